"""What two scripts compute otherwise between the last layer that is right and the first that is not: their operations."""

from __future__ import annotations

from collections import Counter

import msgspec

from trueline.checks._dataflow import line_of, plain
from trueline.compare.layers import Layer
from trueline.compare.localise import Parting, Sides
from trueline.compare.pairing import Pair
from trueline.compare.settings import same
from trueline.knowledge import ARITHMETIC, family_of, meaning_of
from trueline.model import Location, Module, Op
from trueline.store import Run

_STEP_OF_TRACE = 0


class OtherOperations(msgspec.Struct, frozen=True):
    """What is computed otherwise, in one sentence; where mine does so, in which module, and what to do about it."""

    sentence: str
    location: Location | None
    module: str | None
    fix: str = "Compute the same as the reference there."
    by_settings: bool = False


def other_operations(parting: Parting, sides: Sides) -> OtherOperations | None:
    """None where both compute the same, or nothing is known of what they compute."""
    pair, after, inside = parting.pair, parting.after, not parting.between
    own = _region(sides.mine, after.mine if after else None, pair.mine if pair else None, inside=inside)
    expected = _region(sides.reference, after.reference if after else None, pair.reference if pair else None, inside=inside)
    if not own and not expected:
        return None
    a = Counter(family for op in own if (family := _family(op)) is not None)
    b = Counter(family for op in expected if (family := _family(op)) is not None)
    missing, extra = b - a, a - b
    if parting.unsure and set(missing) | set(extra) > {"pad"}:
        # Padding before a layer or in it comes to the same.
        missing.pop("pad", None)
        extra.pop("pad", None)
    if not missing and not extra:
        return _other_numbers(own, expected, sides.mine)
    if missing and extra:
        # Sums and products are written in many ways: the same activation with another slope tells more than these.
        once = {family for family in a.keys() & b.keys() - ARITHMETIC if a[family] == b[family] == 1}
        told_by_numbers = _other_numbers(_of_families(own, once), _of_families(expected, once), sides.mine)
        if told_by_numbers is not None:
            return told_by_numbers
    words = []
    if missing:
        words.append(f"the reference computes {_listed(missing)} there, mine does not")
    if extra:
        words.append(f"mine computes {_listed(extra)}, which the reference does not")
    sentence = "; ".join(words)
    sentence = f"{sentence[0].upper()}{sentence[1:]}."
    told = next((op for op in own if _family(op) in extra), None)
    if told is not None:
        return OtherOperations(sentence, line_of(sides.mine, told), _module_name(sides.mine, told))
    lacking = next(op for op in expected if _family(op) in missing)
    module = _counterpart(sides, lacking)
    if module is not None and module.kind == "container" and after is not None:
        module = _that_computes(sides.mine, module, after.mine.module, pair.mine.module if pair else None)
    ours = [op for op in own if module is not None and op.module == module.id] or own
    place = line_of(sides.mine, ours[-1]) if ours else None
    return OtherOperations(sentence, place or (module.called if module else None), module.name if module else None)


def _counterpart(sides: Sides, op: Op) -> Module | None:
    """The module of mine that holds the layers which lie in the reference's module that this operation runs in."""
    theirs = sides.reference.modules.get(op.module or -1)
    if theirs is None:
        return None
    within = [pair.mine.module for pair in sides.pairs if pair.mine.parameters and _lies_in(pair, theirs)]
    if not within:
        return None
    parts = [module.path.split(".")[:-1] for module in within]
    shared = []
    for names in zip(*parts, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    path = ".".join(shared)
    return next((each for each in sides.mine.modules.values() if each.root == within[0].root and each.path == path), within[0])


def _that_computes(mine: Run, container: Module, layer: Module, following: Module | None) -> Module:
    """A container computes nothing itself: where what follows lies in it too, the part of it that the last right layer is in
    should have; else the module that the container is a part of."""
    by_path = {each.path: each for each in mine.modules.values() if each.root == layer.root}
    if following is not None and f"{following.path}.".startswith(f"{container.path}." if container.path else ""):
        depth = len(container.path.split(".")) + 1 if container.path else 1
        return by_path.get(".".join(layer.path.split(".")[:depth]), container)
    path = container.path
    while path and by_path[path].kind == "container":
        path = path.rpartition(".")[0]
    return by_path.get(path, container)


def _lies_in(pair: Pair, module: Module) -> bool:
    layer = pair.reference.module
    return layer.root == module.root and (not module.path or f"{layer.path}.".startswith(f"{module.path}."))


def _of_families(ops: list[Op], families: set[str]) -> list[Op]:
    return [op for op in ops if _family(op) in families]


def _other_numbers(own: list[Op], expected: list[Op], mine: Run) -> OtherOperations | None:
    """The same operations with other settings; the first of a family belongs to the first of it on the other side."""
    waiting: dict[str | None, list[Op]] = {}
    for op in expected:
        waiting.setdefault(_family(op), []).append(op)
    for a in own:
        counterparts = waiting.get(_family(a))
        if not counterparts:
            continue
        for name, number, other in _numbers(a, counterparts.pop(0)):
            if not same(number, other):
                sentence = f"`{plain(a.name)}` is computed with {name}{number:.6g}, in the reference with {name}{other:.6g}."
                fix = f"Compute it with {name}{other:.6g}."
                return OtherOperations(sentence, line_of(mine, a), _module_name(mine, a), fix, by_settings=True)
    return None


def _numbers(mine: Op, reference: Op) -> list[tuple[str, float, float]]:
    """The numbers that two operations are given, with their names where both have one; else those of the same places."""
    shared = sorted(mine.settings.keys() & reference.settings.keys())
    named = [(f"{key} ", mine.settings[key], reference.settings[key]) for key in shared]
    floats = [each for each in named if isinstance(each[1], float) and isinstance(each[2], float)]
    return floats or [("", a, b) for a, b in zip(_unnamed(mine), _unnamed(reference), strict=False)]


def _unnamed(op: Op) -> list[float]:
    return [value for value in op.settings.get("args") or [] if isinstance(value, int | float) and not isinstance(value, bool)]


def _listed(families: Counter[str]) -> str:
    return " and ".join(meaning_of(family) for family in families)


def _family(op: Op) -> str | None:
    return family_of(plain(op.name), op.settings)


def _module_name(run: Run, op: Op) -> str | None:
    return run.modules[op.module].name if op.module in run.modules else None


def _region(run: Run, after: Layer | None, until: Layer | None, *, inside: bool) -> list[Op]:
    """The traced operations after those of one layer and before those of another, or also inside of it."""
    traced = [op for op in run.ops if op.step == _STEP_OF_TRACE]
    if not traced:
        return []
    start = max((op.seq for op in traced if after is not None and op.module == after.module.id), default=-1)
    within = [op.seq for op in traced if until is not None and op.module == until.module.id and op.seq > start]
    end = traced[-1].seq + 1
    if within:
        end = within[-1] + 1 if inside else within[0]
    return [op for op in traced if start < op.seq < end]
