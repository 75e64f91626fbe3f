"""Several layers of one side that are one layer of the other: query, key and value in a joined projection, both directions of a
recurrent layer.

The layers are put together into one that stands for them, so that it can be paired and compared as any other.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from trueline.compare.layers import Layer
from trueline.store.joined_names import together

_BACK = "_reverse"
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
    for forwards, backwards in _directions(split, other):
        found[forwards.module.id] = _both_ways(forwards, backwards)
        dropped |= {forwards.module.id, backwards.module.id}
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


def _directions(split: list[Layer], other: list[Layer]) -> list[tuple[Layer, Layer]]:
    """Neighbouring recurrent layers of which the other side has one that reads both ways."""
    whole = [layer for layer in other if _reads_back(layer)]
    if not whole or any(_reads_back(layer) for layer in split):
        return []
    single = [layer for layer in split if layer.module.kind == "recurrent"]
    pairs = list(zip(single[::2], single[1::2], strict=False))
    fitting = [
        (first, second)
        for (first, second), both in zip(pairs, whole, strict=False)
        if first.shapes == second.shapes == {role: shape for role, shape in both.shapes.items() if not role.endswith(_BACK)}
    ]
    return fitting if len(fitting) == len(whole) and 2 * len(whole) == len(single) else []


def _reads_back(layer: Layer) -> bool:
    return layer.module.kind == "recurrent" and any(role.endswith(_BACK) for role in layer.parameters)


def _both_ways(forwards: Layer, backwards: Layer) -> Layer:
    """What they give may be turned around in time, by the script: only the parameters are compared."""
    turned = {f"{role}{_BACK}": parameter for role, parameter in backwards.parameters.items()}
    return Layer(
        forwards.module, forwards.root, forwards.parameters | turned, forwards.place, is_leaf=False, parts=(forwards, backwards)
    )


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
