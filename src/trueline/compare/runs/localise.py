"""Where two aligned runs first part: the first layer whose output is off although what went in was not, then the loss, the
gradients, the update. What a layer only inherits from the ones before it is not its own."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from trueline.compare.runs.fairness import trained_model
from trueline.compare.runs.kept import Array, Kept
from trueline.compare.runs.layers import Layer
from trueline.compare.runs.measure import Distance, distance, in_shape_of
from trueline.compare.runs.pairing import Pair, parameter_pairs, shared_parameters, without_ones
from trueline.compare.runs.sides import Sides
from trueline.store import Run
from trueline.store.joined_names import first_of

_FIRST = 0
# After the first step the averages are not the gradient alone.
_TIMES_PLACE_OF_EPS = 3.0
# How far updates of two frameworks may be apart that no setting tells apart. MindSpore's Adagrad on CPUs adds 1e-8 to what it
# takes the root of, and has no eps; PyTorch adds eps to the root.
_OTHER_KERNELS = 5e-4
# The share of a parameter whose gradients have to be the same for its update to be compared by these.
_ENOUGH = 0.1
# From here on what is left of a gradient says nothing.
_ONLY_ROUNDING = 0.02


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


def forward(sides: Sides, told_otherwise: set[str]) -> Parting | None:
    """The layer that first injects an error. `told_otherwise`: paths of my layers whose settings differ: of these a smaller error
    is enough than of layers that should do the same."""
    parting = first_off(sides, _FIRST)
    seen = None if parting is None or parting.pair is None or parting.between else sides.injected(parting.pair)
    # What is off may be no more than what came in, carried further: then a layer before it has injected that.
    is_carried = seen is not None and seen[0].relative <= seen[1]
    right: Pair | None = None
    for pair in sides.pairs:
        if parting is not None and pair is parting.pair:
            break
        found = sides.injected(pair)
        if found is None:
            continue
        if found[0].relative > found[1] and (is_carried or pair.mine.path in told_otherwise):
            return Parting(_FIRST, "forward", pair, False, right, *found, "output")  # noqa: FBT003 - a field of the struct
        right = pair
    return parting


def first_off(sides: Sides, step: int) -> Parting | None:
    """The first layer, in the order of calls, whose output is off. What may not belong together counts when what follows is off
    too, and not when that is right again: layers without weights, modules of the authors' own, and outputs of another shape, as
    when one side pads inside of a layer and cuts the rest off."""
    right: Pair | None = None
    held: Parting | None = None
    for pair in sides.pairs:
        found = sides.is_off(step, "output", pair)
        if found is None:
            if pair.computes_the_same and sides.expected.positions(step, "output", pair.reference.path):
                right, held = pair, None
            continue
        given = sides.is_off(step, "input", pair)
        # Inputs of another size, as padded beforehand, say nothing.
        unsure = given is not None and not math.isfinite(given[0].relative)
        inherited = given is not None and not unsure
        shown = given if inherited and given is not None else found
        parting = Parting(step, "forward", pair, inherited, right, *shown, "input" if inherited else "output", unsure)
        if not found[0].other_shape and pair.mine.parameters and pair.mine.module.kind != "other":
            return held or parting
        held = held or parting
    whole = _of_the_models(sides, step)
    is_right = whole is not None and whole[0].relative <= whole[1]
    if held is not None and not is_right:
        return held
    # Models that hold their loss give another shape, and so do those that give more than one tensor.
    if whole is None or is_right or whole[0].other_shape:
        return None
    return Parting(step, "forward", None, True, right, *whole, "output")  # noqa: FBT003 - a field of the struct


def _of_the_models(sides: Sides, step: int) -> tuple[Distance, float] | None:
    """How far off is what the whole models give, and how far it may be."""
    mine = _that_ends(sides.mine, sides.kept, sides.layers[0], step)
    reference = _that_ends(sides.reference, sides.expected, sides.layers[1], step)
    return None if mine is None or reference is None else sides.apart(step, "output", mine, reference)


def _that_ends(run: Run, kept: Kept, layers: list[Layer], step: int) -> str | None:
    """The model; where it gives what its last layer gave, and nothing was kept twice, that layer."""
    root = trained_model(run)
    if root is None or kept.positions(step, "output", root):
        return root
    return next((layer.path for layer in reversed(layers) if kept.positions(step, "output", layer.path)), None)


def without_counterpart(parting: Parting, sides: Sides) -> tuple[list[Layer], list[Layer]]:
    """The layers of each side, between the last that is right and the one that is off, whose weights could not be put in each
    other's place, or only by their number: nothing that follows them can be compared."""
    return (
        _unaligned(sides, 0, parting.after.mine if parting.after else None, parting.pair.mine if parting.pair else None),
        _unaligned(
            sides, 1, parting.after.reference if parting.after else None, parting.pair.reference if parting.pair else None
        ),
    )


def _unaligned(sides: Sides, side: int, after: Layer | None, until: Layer | None) -> list[Layer]:
    paired = {module.id for pair in sides.pairs if _same_sizes(pair) for module in (pair.mine, pair.reference)[side].modules}
    pairs = parameter_pairs(sides.pairs)
    given = {first_of(name) for name in ((pairs, pairs.values())[side])}
    shapes = [{name: each.shape for layer in layers for name, each in layer.named.items()} for layers in sides.layers]
    sure = {
        names[side] for names in sides.loose.items() if without_ones(shapes[0][names[0]]) == without_ones(shapes[1][names[1]])
    }
    found = []
    for layer in sides.layers[side]:
        known = layer.named.keys() <= sure
        # Of a recurrent layer with several layers or directions, some may have found a counterpart.
        whole = layer.module.id in paired and (layer.module.kind != "recurrent" or layer.named.keys() <= given)
        between = (after is None or layer.place > after.place) and (until is None or layer.place <= until.place)
        if layer.parameters and not whole and not known and (between or not layer.is_called):
            found.append(layer)
    return found


def _same_sizes(pair: Pair) -> bool:
    """Whether what one layer learns could be put in the place of what the other does."""
    return all(math.prod(mine.shape) == math.prod(reference.shape) for mine, reference in shared_parameters(pair))


def backward(sides: Sides, step: int = _FIRST) -> Parting | None:
    """The layer nearest to the loss whose output gets another gradient, else the one whose parameters do. Gradients of outputs
    alone may be shared out otherwise, as among equal ones of which a maximum takes one: where those of all parameters are right,
    nothing differs."""
    learnt = parameters(sides, "gradient", "backward", step)
    if learnt is None and sides.knows_gradients(step):
        return None
    behind: Pair | None = None
    for pair in reversed(sides.pairs):
        if sides.is_off(step, "output", pair) is not None:
            # All that counts is right forwards: these do not belong together.
            continue
        found = sides.is_off(step, "output_grad", pair)
        if found is not None and not found[0].other_shape:
            return Parting(step, "backward", pair, True, behind, *found, "gradient")  # noqa: FBT003 - a field of the struct
        behind = pair
    return learnt


def update(sides: Sides, step: int = _FIRST, *, told_otherwise: bool) -> Parting | None:
    """The parameters that a step changes in another way although their gradients are the same. `told_otherwise`: the optimizers
    have other settings; those of two frameworks that have not are allowed kernels that round in their own way."""
    worst: Parting | None = None
    least = 0.0 if told_otherwise or sides.mine.framework == sides.reference.framework else _OTHER_KERNELS
    for pair, mine, reference, buffer in sides.parameters():
        a, b = sides.kept.update(step, mine), sides.expected.update(step, reference)
        if buffer or a is None or b is None or a.size != b.size:
            continue
        if sides.cancelled(step, pair, reference) > _ONLY_ROUNDING:
            # An optimizer that divides by the size of the gradient makes a whole step of it.
            continue
        floor = max(sides.floor.of_update(step, reference), _by_place_of_eps(sides, step, reference), least)
        found = distance(a, b), floor
        if found[0].relative > floor:
            found = _with_the_same_gradient(sides, step, (mine, reference), (a, b), floor), floor
        if found[0].relative > found[1] and (worst is None or found[0].relative > worst.apart.relative):
            worst = Parting(step, "update", pair, False, None, *found, "update")  # noqa: FBT003 - a field of the struct
    return worst


def _with_the_same_gradient(
    sides: Sides, step: int, names: tuple[str, str], updates: tuple[Array, Array], floor: float
) -> Distance:
    """How far updates are apart where the gradients are the same: an optimizer that divides by the size of a gradient makes a
    whole step of its rounding too."""
    own, expected = sides.kept.get(step, "gradient", names[0]), sides.expected.get(step, "gradient", names[1])
    fitted = None if own is None or expected is None else in_shape_of(own, expected)
    moved = in_shape_of(updates[0], updates[1])
    if fitted is None or expected is None or moved is None or expected.shape != updates[1].shape:
        return distance(*updates)
    same = np.abs(fitted - expected) <= floor * np.abs(expected)
    return distance(moved[same], updates[1][same]) if np.mean(same) > _ENOUGH else distance(*updates)


def _by_place_of_eps(sides: Sides, step: int, parameter: str) -> float:
    """How far updates of Adam are apart because MindSpore adds eps before it corrects the averages for their beginning, and
    PyTorch afterwards: that of the former counts as several times as large in the first steps."""
    runs = (sides.mine, sides.reference)
    if {run.framework for run in runs} != {"pytorch", "mindspore"}:
        return 0.0
    if not all(optimizer.type.lower().startswith("adam") for run in runs for optimizer in run.optimizers.values()):
        return 0.0
    told = {each.name: each.value for each in reversed(sides.reference.hyperparameters)}
    gradient, betas, eps = sides.expected.get(step, "gradient", parameter), told.get("betas"), told.get("eps")
    if gradient is None or not isinstance(betas, list | tuple) or len(betas) < 2 or not isinstance(eps, float):
        return 0.0
    size = np.abs(gradient.astype(np.float64))
    after = size / (size + eps + np.finfo(np.float64).tiny)
    before = size / (size + eps / math.sqrt(1.0 - float(betas[1]) ** (step + 1)) + np.finfo(np.float64).tiny)
    length = float(np.linalg.norm(after))
    return _TIMES_PLACE_OF_EPS * float(np.linalg.norm(after - before)) / length if length else 0.0


def running_statistics(sides: Sides, step: int = _FIRST) -> Parting | None:
    """Statistics that layers keep of their batches, after a step."""
    for pair, mine, reference, buffer in sides.parameters():
        found = sides.apart(step, "parameter", mine, reference) if buffer else None
        if found is not None and found[0].relative > found[1]:
            return Parting(step, "forward", pair, False, None, *found, "running statistics")  # noqa: FBT003
    return None


def parameters(sides: Sides, role: str, phase: str, step: int) -> Parting | None:
    worst: Parting | None = None
    for pair, mine, reference, buffer in sides.parameters():
        found = None if buffer else sides.apart(step, role, mine, reference)
        if role == "gradient" and found is None and not buffer and sides.gets_none(step, mine, reference):
            found = Distance(1.0, math.inf, 0.0, "there is none"), 0.0
        if found is not None and role == "gradient":
            found = found[0], max(found[1], sides.cancelled(step, pair, reference))
            if found[0].relative > found[1]:
                found = found[0], max(found[1], sides.switched(step, pair))
        if found is not None and found[0].relative > found[1] and (worst is None or found[0].relative > worst.apart.relative):
            worst = Parting(step, phase, pair, False, None, *found, role)  # noqa: FBT003 - a field of the struct
    return worst
