"""Several layers of one side that are one layer of the other: query, key and value in a joined projection, the layers and
directions of a recurrent one.

The layers are put together into one that stands for them, so that it can be paired and compared as any other.
"""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from trueline.compare.runs.layers import Layer
from trueline.store.joined_names import together

_BACK = "_reverse"
_UNIT = re.compile(r"(_l\d+)?(_reverse)?$")
_ATTENTION = ("query", "key", "value")
# Three before two: query, key and value hold key and value.
_COUNTS = (3, 2, 4)

Shape = tuple[int, ...]


def put_together(mine: list[Layer], reference: list[Layer]) -> tuple[list[Layer], list[Layer]]:
    """Both sides, with layers put together where the other side has them as one."""
    return _as_in(mine, reference), _as_in(reference, mine)


def _as_in(split: list[Layer], other: list[Layer]) -> list[Layer]:
    wanted = _shapes(other)
    wanted.subtract(_shapes(split))
    groups: dict[tuple[str, str, Shape], list[Layer]] = {}
    for layer in split:
        shape = layer.shapes.get("weight")
        if layer.module.kind == "linear" and shape is not None:
            around = layer.module.path.rpartition(".")[0]
            groups.setdefault((layer.root, around, shape), []).append(layer)
    found: dict[int, Layer] = {}
    dropped: set[int] = set()
    for stack, units in _stacks(split, other):
        found[stack[0].module.id] = _stacked(stack, units)
        dropped |= {part.module.id for part in stack}
    for (_, _, shape), siblings in groups.items():
        for count in _COUNTS:
            whole = (shape[0] * count, *shape[1:])
            parts = _parts(siblings, count)
            if parts is not None and wanted[whole] > 0:
                wanted[whole] -= 1
                first = min(parts, key=lambda part: part.place)
                found[first.module.id] = _one(parts, first)
                dropped |= {part.module.id for part in parts}
                break
    return [found.get(layer.module.id, layer) for layer in split if layer.module.id in found or layer.module.id not in dropped]


def _stacks(split: list[Layer], other: list[Layer]) -> list[tuple[list[Layer], list[str]]]:
    """Recurrent layers one after another of which the other side has one, and what the parameters of each of its layers and
    directions are called there."""
    left = [layer for layer in split if layer.module.kind == "recurrent"]
    found = []
    for whole in (layer for layer in other if layer.module.kind == "recurrent"):
        wanted = _units(whole)
        parts: list[Layer] = []
        while left and sum(len(_units(part)) for part in parts) < len(wanted):
            parts.append(left.pop(0))
        if [unit for part in parts for unit in _units(part).values()] != list(wanted.values()):
            return []
        if len(parts) > 1:
            found.append((parts, list(wanted)))
    return [] if left else found


def _units(layer: Layer) -> dict[str, dict[str, Shape]]:
    """The layers and directions of a recurrent layer: what ends the names of their parameters, and their shapes."""
    found: dict[str, dict[str, Shape]] = {}
    for role, shape in layer.shapes.items():
        name, unit = _cut(role)
        found.setdefault(unit, {})[name] = shape
    return dict(sorted(found.items(), key=lambda each: (each[0].removesuffix(_BACK), each[0])))


def _cut(role: str) -> tuple[str, str]:
    """`weight_ih_l1_reverse` is `weight_ih` of `_l1_reverse`."""
    unit = _UNIT.search(role)
    return (role, "") if unit is None else (role[: unit.start()], unit[0])


def _stacked(parts: list[Layer], units: list[str]) -> Layer:
    """What they give may be one step, or turned around in time by the script: only the parameters are compared."""
    parameters = {}
    names = iter(units)
    for part in parts:
        renamed = {unit: next(names) for unit in _units(part)}
        for role, parameter in part.parameters.items():
            name, unit = _cut(role)
            parameters[f"{name}{renamed[unit]}"] = parameter
    return Layer(parts[0].module, parts[0].root, parameters, parts[0].place, is_leaf=False, parts=tuple(parts))


def _shapes(layers: list[Layer]) -> Counter[Shape]:
    """How often each shape of a matrix occurs in layers that project."""
    kinds = {"linear", "attention", "other"}
    return Counter(shape for layer in layers if layer.module.kind in kinds for shape in layer.shapes.values() if len(shape) == 2)


def _parts(siblings: list[Layer], count: int) -> list[Layer] | None:
    """So many of these layers, in the order in which a joined one holds them: by name, else in the order of their calls."""
    words = _ATTENTION[-count:] if count <= len(_ATTENTION) else ()
    named = {layer.words[0]: layer for layer in siblings}
    if words and all(word in named for word in words):
        return [named[word] for word in words]
    if len(siblings) < count or len({frozenset(layer.shapes) for layer in siblings[:count]}) > 1:
        return None
    return siblings[:count]


def _one(parts: list[Layer], first: Layer) -> Layer:
    parameters = {}
    for role in first.parameters:
        own = [(part.root, part.parameters[role]) for part in parts if role in part.parameters]
        if len(own) != len(parts):
            continue
        length = sum(parameter.shape[0] for _, parameter in own)
        # Names begin with the root, which the first part gets from its layer.
        path = together([own[0][1].path, *(f"{root}.{parameter.path}" for root, parameter in own[1:])])
        parameters[role] = msgspec.structs.replace(own[0][1], path=path, shape=(length, *own[0][1].shape[1:]))
    return Layer(first.module, first.root, parameters, first.place, first.is_leaf, tuple(parts))
