"""What two scripts compute otherwise between the last layer that is right and the first that is not: their operations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from trueline.compare.runs.layers import Layer
from trueline.compare.runs.localise import Parting
from trueline.compare.runs.pairing import Pair
from trueline.compare.runs.settings import same, shown
from trueline.compare.runs.sides import Sides
from trueline.knowledge import ARITHMETIC, families_of, function_of, given_to, meaning_of, scale_of
from trueline.model import Location, Module, Op
from trueline.store import Run
from trueline.views.dataflow import line_of, plain

_STEP_OF_TRACE = 0
# Told last: axes may be laid out otherwise.
_AXES = {"dim", "dims"}
_KEEPS_AXES = {"softmax", "log_softmax", "cumsum", "normalize"}


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
    # Layers that have a counterpart are compared as such.
    others = [each for each in sides.pairs if each is not pair and each.mine.parameters]
    own = _outside(own, [*(each.mine for each in others), *_of_names(sides.layers[0], set(sides.loose))])
    expected = _outside(expected, [*(each.reference for each in others), *_of_names(sides.layers[1], set(sides.loose.values()))])
    if not own and not expected:
        return None
    a = Counter(family for op in own for family in _families(op))
    b = Counter(family for op in expected for family in _families(op))
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
        told_by_numbers = _other_numbers(own, expected, sides.mine, once)
        if told_by_numbers is not None:
            return told_by_numbers
    words = []
    if missing:
        words.append(f"the reference computes {_listed(missing)} there, mine does not")
    if extra:
        words.append(f"mine computes {_listed(extra)}, which the reference does not")
    sentence = "; ".join(words)
    sentence = f"{sentence[0].upper()}{sentence[1:]}."
    told = next((op for op in own if extra.keys() & _families(op)), None)
    if told is not None:
        return OtherOperations(sentence, line_of(sides.mine, told), _module_name(sides.mine, told))
    # The innermost of them: masks are also made ready outside of what uses them.
    lacking = max((op for op in expected if missing.keys() & _families(op)), key=lambda op: _depth(sides.reference, op))
    module = _counterpart(sides, lacking)
    if module is not None and module.kind == "container" and after is not None:
        module = _that_computes(sides.mine, module, after.mine.module, pair.mine.module if pair else None)
    ours = [op for op in own if module is not None and op.module == module.id] or own
    place = line_of(sides.mine, ours[-1]) if ours else None
    return OtherOperations(sentence, place or (module.called if module else None), module.name if module else None)


def _of_names(layers: list[Layer], names: set[str]) -> list[Layer]:
    """The layers all of whose parameters are among these."""
    return [layer for layer in layers if layer.parameters and layer.named.keys() <= names]


def _outside(ops: list[Op], layers: list[Layer]) -> list[Op]:
    """The operations that are not those of these layers; modules around others, and those that scripts define, compute more than
    what is theirs."""
    inside = {module.id for layer in layers if layer.is_leaf or layer.parts for module in layer.modules if module.kind != "other"}
    return [op for op in ops if op.module not in inside]


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


def _other_numbers(own: list[Op], expected: list[Op], mine: Run, families: set[str] | None = None) -> OtherOperations | None:
    """The same operations with other settings; the first of a family belongs to the first of it on the other side."""
    waiting: dict[str, list[Op]] = {}
    for op in expected:
        for family in _families(op):
            waiting.setdefault(family, []).append(op)
    for op in own:
        for family in _families(op):
            counterparts = waiting.get(family)
            if not counterparts or (families is not None and family not in families):
                continue
            told = _setting(family, op, counterparts.pop(0))
            if told is not None:
                name, own_value, value = told
                sentence = f"`{plain(op.name)}` is computed {name}{shown(own_value)}, in the reference {name}{shown(value)}."
                fix = f"Compute it {name}{shown(value)}."
                return OtherOperations(sentence, line_of(mine, op), _module_name(mine, op), fix, by_settings=True)
    return None


def _setting(family: str, mine: Op, reference: Op) -> tuple[str, Any, Any] | None:
    """The first thing that two operations of a family are told otherwise."""
    if family == "scale":
        own_scale, scale = (scale_of(plain(op.name), op.settings, _shape(op)) for op in (mine, reference))
        return None if own_scale is None or scale is None or same(own_scale, scale) else ("with a scale of ", own_scale, scale)
    own, expected = (given_to(plain(op.name), op.settings, len(_shape(op) or [])) for op in (mine, reference))
    lengths = _length(family, mine, own), _length(family, reference, expected)
    for name in sorted(own.keys() & expected.keys(), key=lambda name: (name in _AXES, name)):
        if name in _AXES and None in (own[name], expected[name]):
            # Axes that are not known.
            continue
        if name in _AXES and None not in lengths and lengths[0] != lengths[1]:
            return "along an axis of length ", *lengths
        if not same(own[name], expected[name]):
            return f"with {name} ", own[name], expected[name]
    return next((("with ", a, b) for a, b in zip(_unnamed(mine), _unnamed(reference), strict=False) if not same(a, b)), None)


def _length(family: str, op: Op, given: dict[str, Any]) -> int | None:
    """How long the axis is that an operation works along, where it keeps it: axes may be laid out otherwise."""
    shape, axis = _shape(op), given.get("dim")
    if family not in _KEEPS_AXES or shape is None or not isinstance(axis, int) or not 0 <= axis < len(shape):
        return None
    return shape[axis]


def _shape(op: Op) -> list[int] | None:
    return op.outputs[0]["shape"] if op.outputs else None


def _unnamed(op: Op) -> list[float]:
    """Numbers of functions whose arguments have no names here."""
    if given_to(plain(op.name), {}):
        return []
    return [value for value in op.settings.get("args") or [] if isinstance(value, int | float) and not isinstance(value, bool)]


def _listed(families: Counter[str]) -> str:
    return " and ".join(meaning_of(family) for family in families)


def _families(op: Op) -> list[str]:
    return families_of(plain(op.name), op.settings)


def _depth(run: Run, op: Op) -> int:
    return run.modules[op.module].path.count(".") if op.module in run.modules else -1


def _module_name(run: Run, op: Op) -> str | None:
    return run.modules[op.module].name if op.module in run.modules else None


def _region(run: Run, after: Layer | None, until: Layer | None, *, inside: bool) -> list[Op]:
    """The traced operations after those of one layer and before those of another, or also inside of it."""
    traced = [op for op in run.ops if op.step == _STEP_OF_TRACE]
    if not traced:
        return []
    before = {module.id for module in after.modules} if after is not None else set()
    start = max((op.seq for op in traced if op.module in before), default=-1)
    within = [op.seq for op in traced if until is not None and op.module == until.module.id and op.seq > start]
    end = traced[-1].seq + 1
    if within:
        end = within[-1] + 1 if inside else within[0]
    return _with_activations(run, [op for op in traced if start < op.seq < end])


def _with_activations(run: Run, ops: list[Op]) -> list[Op]:
    """Activations that are layers as one operation each, whatever the framework computes them with."""
    found: list[Op] = []
    for op in ops:
        module = run.modules.get(op.module) if op.module is not None else None
        if module is None or module.kind != "activation":
            found.append(op)
        elif not found or found[-1].module != module.id:
            name, settings = function_of(module)
            found.append(msgspec.structs.replace(op, name=name, settings=settings))
    return found
