"""Where two aligned runs first part: the first layer whose output is off although what went in was not, then the loss, the
gradients, the update. What a layer only inherits from the ones before it is not its own."""

from __future__ import annotations

import math

import msgspec

from trueline.compare.kept import Kept
from trueline.compare.layers import Layer
from trueline.compare.measure import Distance, Floor, distance
from trueline.compare.pairing import Pair
from trueline.store import Run

_FIRST = 0


class Parting(msgspec.Struct, frozen=True):
    """What was found to be off first. `pair` is the layer it was seen at; `between`: it came in with what the layer was given, so
    the operations between `after` (the last layer that was right) and it are to blame; `unsure`: what the layer was given cannot
    be compared."""

    step: int
    phase: str
    pair: Pair | None
    between: bool
    after: Pair | None
    apart: Distance
    floor: float
    what: str
    unsure: bool = False


class Sides:
    """Two aligned runs and what is needed to set them side by side."""

    def __init__(self, mine: Run, reference: Run, perturbed: Run | None, pairs: list[Pair], *, half: str | None) -> None:
        self.mine = mine
        self.reference = reference
        self.pairs = pairs
        self.kept = Kept(mine)
        self.expected = Kept(reference)
        self.floor = Floor(self.expected, None if perturbed is None else Kept(perturbed), half=half)

    def apart(self, step: int, role: str, mine: str, reference: str, position: int = 0) -> tuple[Distance, float] | None:
        """How far a tensor is off, and how far it may be; None where one side has none."""
        a, b = self.kept.get(step, role, mine, position), self.expected.get(step, role, reference, position)
        if a is None or b is None:
            return None
        return distance(a, b), self.floor.of(step, role, reference, position)

    def is_off(self, step: int, role: str, pair: Pair) -> tuple[Distance, float] | None:
        """The first tensor of a pair of layers that is further off than noise explains; None where all are near."""
        if not pair.computes_the_same:
            return None
        for position in self.expected.positions(step, role, pair.reference.path):
            found = self.apart(step, role, pair.mine.path, pair.reference.path, position)
            # Authors cut modules of their own as they like: where shapes differ, so does what they hold.
            cut_otherwise = pair.mine.module.kind == "other" and found is not None and bool(found[0].why)
            if found is not None and found[0].relative > found[1] and not cut_otherwise:
                return found
        return None


def forward(sides: Sides, step: int = _FIRST) -> Parting | None:
    """The first layer, in the order of calls, whose output is off."""
    right: Pair | None = None
    for pair in sides.pairs:
        found = sides.is_off(step, "output", pair)
        if found is None:
            if pair.computes_the_same and sides.expected.positions(step, "output", pair.reference.path):
                right = pair
            continue
        given = sides.is_off(step, "input", pair)
        # Inputs of another size, as padded beforehand, say nothing.
        unsure = given is not None and not math.isfinite(given[0].relative)
        inherited = given is not None and not unsure
        shown = given if inherited and given is not None else found
        return Parting(step, "forward", pair, inherited, right, *shown, "input" if inherited else "output", unsure)
    return _behind_the_layers(sides, step, right)


def _behind_the_layers(sides: Sides, step: int, right: Pair | None) -> Parting | None:
    """What the whole model gives, where all of its layers are right."""
    mine, reference = _trained_root(sides.mine), _trained_root(sides.reference)
    if mine is None or reference is None:
        return None
    found = sides.apart(step, "output", mine, reference)
    if found is None or found[0].relative <= found[1]:
        return None
    return Parting(step, "forward", None, True, right, *found, "output")  # noqa: FBT003 - a field of the struct


def _trained_root(run: Run) -> str | None:
    for call in run.root_calls:
        if call.grad and not call.loss and call.module in run.modules:
            module = run.modules[call.module]
            root = run.modules[module.root]
            return f"{root.name}.{module.path}".rstrip(".")
    return None


def backward(sides: Sides, step: int = _FIRST) -> Parting | None:
    """The layer nearest to the loss whose output gets another gradient, else the one whose parameters do."""
    behind: Pair | None = None
    for pair in reversed(sides.pairs):
        found = sides.is_off(step, "output_grad", pair)
        if found is not None:
            return Parting(step, "backward", pair, True, behind, *found, "gradient")  # noqa: FBT003 - a field of the struct
        behind = pair
    return parameters(sides, "gradient", "backward", step)


def update(sides: Sides, step: int = _FIRST) -> Parting | None:
    """The parameters that a step changes in another way although their gradients are the same."""
    worst: Parting | None = None
    for pair in sides.pairs:
        for mine, reference, buffer in shared_parameters(pair):
            a, b = sides.kept.update(step, mine), sides.expected.update(step, reference)
            if buffer or a is None or b is None:
                continue
            found = distance(a, b), sides.floor.of_update(step, reference)
            if found[0].relative > found[1] and (worst is None or found[0].relative > worst.apart.relative):
                worst = Parting(step, "update", pair, False, None, *found, "update")  # noqa: FBT003 - a field of the struct
    return worst


def running_statistics(sides: Sides, step: int = _FIRST) -> Parting | None:
    """Statistics that layers keep of their batches, after a step."""
    for pair in sides.pairs:
        for mine, reference, buffer in shared_parameters(pair):
            if not buffer:
                continue
            found = sides.apart(step, "parameter", mine, reference)
            if found is not None and found[0].relative > found[1]:
                return Parting(step, "forward", pair, False, None, *found, "running statistics")  # noqa: FBT003
    return None


def parameters(sides: Sides, role: str, phase: str, step: int) -> Parting | None:
    worst: Parting | None = None
    for pair in sides.pairs:
        for mine, reference, buffer in shared_parameters(pair):
            found = None if buffer else sides.apart(step, role, mine, reference)
            if found is not None and found[0].relative > found[1] and (worst is None or found[0].relative > worst.apart.relative):
                worst = Parting(step, phase, pair, False, None, *found, role)  # noqa: FBT003 - a field of the struct
    return worst


def shared_parameters(pair: Pair) -> list[tuple[str, str, bool]]:
    """The names on both sides of the parameters that a pair of layers has in common, and whether they are buffers."""
    found = []
    for role, parameter in pair.mine.parameters.items():
        other = pair.reference.parameters.get(role)
        if other is not None:
            found.append((_name(pair.mine, parameter.path), _name(pair.reference, other.path), parameter.buffer))
    return found


def _name(layer: Layer, path: str) -> str:
    return f"{layer.root}.{path}"
