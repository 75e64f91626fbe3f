"""Which layer of one run is which of the other, whatever they are called: by kind, shapes, order of calls, and names.

An alignment of the two sequences of calls that gains most, as sequences of letters are aligned: layers keep their order, and a
layer that the other side lacks is left out. Neighbours that only their names tell apart (query, key, value) are put right
afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from operator import attrgetter

import msgspec

from trueline.compare.runs.joined import put_together
from trueline.compare.runs.layers import Layer
from trueline.knowledge import same_layer
from trueline.model import Parameter
from trueline.store.joined_names import in_parts

# What a pair gains by its parameters, its name, and by being of a kind without parameters.
_SAME_SHAPES, _PARTLY, _OTHER_SHAPES, _BARE = 1.0, 0.6, 0.15, 0.3
_BY_NAME = 0.2
# What is left of that where they give tensors of other sizes, and where they are of the same kind only.
_OTHER_OUTPUT, _OTHER_TYPE = 0.4, 0.8
# From here on the table of all pairs is too large; then equal layers are paired in their order.
_MOST_PAIRS = 4_000_000


class Pair(msgspec.Struct, frozen=True):
    """A layer of mine and its counterpart; `confidence` is 1 where kind, shapes and name agree."""

    mine: Layer
    reference: Layer
    confidence: float

    @property
    def computes_the_same(self) -> bool:
        """Whether both are layers of their own; modules around others share parameters, and may begin and end elsewhere."""
        return self.mine.is_leaf and self.reference.is_leaf


def pair_layers(mine: list[Layer], reference: list[Layer], fixed: dict[str, str] | None = None) -> list[Pair]:
    """The pairs in the order of my calls. `fixed` holds parameters (`root.path`) whose counterparts are known."""
    known = _known(mine, reference, fixed or {}) or _of_the_same_names(mine, reference)
    if known:
        rest = pair_layers(*_without(mine, reference, known))
        return sorted([*known, *rest], key=lambda pair: pair.mine.place)
    mine, reference = put_together(mine, reference)
    if len(mine) * len(reference) > _MOST_PAIRS:
        return _by_signature(mine, reference)
    gains = [[gain(a, b) for b in reference] for a in mine]
    found = _best_path(gains)
    found = _renamed(mine, reference, found)
    found += _left_over(mine, reference, found)
    pairs = [Pair(mine[a], reference[b], min(1.0, gains[a][b] / (_worth(mine[a]) + _BY_NAME))) for a, b in sorted(found)]
    return [pair for pair in pairs if pair.confidence > 0]


def _known(mine: list[Layer], reference: list[Layer], fixed: dict[str, str]) -> list[Pair]:
    own = {name: layer for layer in mine for name in layer.named}
    other = {name: layer for layer in reference for name in layer.named}
    found: dict[int, Pair] = {}
    for name, counterpart in fixed.items():
        if name in own and counterpart in other:
            found.setdefault(own[name].module.id, Pair(own[name], other[counterpart], 1.0))
    return list(found.values())


def _of_the_same_names(mine: list[Layer], reference: list[Layer]) -> list[Pair]:
    """All layers that have parameters, where both sides call each of them the same: then nothing was renamed, and layers that are
    called in another order are so by mistake."""
    own, other = ([layer for layer in layers if layer.parameters] for layers in (mine, reference))
    # The variable that holds the model may have another name.
    for named in (attrgetter("path"), attrgetter("module.path")):
        left, right = ({named(layer): layer for layer in layers} for layers in (own, other))
        if len(left) == len(own) and len(right) == len(other) and _signatures(left) == _signatures(right):
            return [Pair(layer, right[name], 1.0) for name, layer in left.items()]
    return []


def _signatures(layers: dict[str, Layer]) -> dict[str, tuple[str, dict[str, tuple[int, ...]]]]:
    return {name: (layer.module.kind, layer.shapes) for name, layer in layers.items()}


def _without(mine: list[Layer], reference: list[Layer], pairs: list[Pair]) -> tuple[list[Layer], list[Layer]]:
    """The layers that are in none of the pairs."""
    own = {module.id for pair in pairs for module in pair.mine.modules}
    other = {module.id for pair in pairs for module in pair.reference.modules}
    return [layer for layer in mine if layer.module.id not in own], [layer for layer in reference if layer.module.id not in other]


def all_parameters(mine: list[Layer], reference: list[Layer], fixed: dict[str, str] | None = None) -> dict[str, str]:
    """My parameters and the reference's that take their place, of layers that are paired and of those that are not."""
    pairs = pair_layers(mine, reference, fixed)
    return parameter_pairs(pairs) | loose_pairs(mine, reference, pairs) | (fixed or {})


def parameter_pairs(pairs: list[Pair]) -> dict[str, str]:
    """My parameters (`root.path`) and those of the reference that take their place."""
    found: dict[str, str] = {}
    for pair in pairs:
        for own, other in shared_parameters(pair):
            found |= in_parts(f"{pair.mine.root}.{own.path}", f"{pair.reference.root}.{other.path}")
    return found


def shared_parameters(pair: Pair) -> list[tuple[Parameter, Parameter]]:
    """The parameters that a pair of layers has in common: by role, else the only one of the same shape."""
    found = []
    taken = set()
    for role, parameter in pair.mine.parameters.items():
        other = pair.reference.parameters.get(role)
        if other is None:
            alike = [
                (name, each)
                for name, each in pair.reference.parameters.items()
                if name not in pair.mine.parameters and name not in taken and each.shape == parameter.shape
            ]
            role, other = alike[0] if len(alike) == 1 else (role, None)  # noqa: PLW2901 - the role that was found
        if other is not None:
            taken.add(role)
            found.append((parameter, other))
    return found


def loose_pairs(mine: list[Layer], reference: list[Layer], pairs: list[Pair]) -> dict[str, str]:
    """Parameters of layers without counterpart that fit one of the other side by their shape alone (a table of positions may be a
    parameter of the model or an embedding), else by their rows: what a convolution of patches has is a matrix elsewhere."""
    left, right = _without(mine, reference, pairs)
    found = _fitting(left, right, without_ones, known={})
    return found | _fitting(left, right, lambda shape: (shape[0], _size(shape)) if shape else (), known=found)


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)


def _fitting(
    mine: list[Layer], reference: list[Layer], key: Callable[[tuple[int, ...]], tuple[int, ...]], known: dict[str, str]
) -> dict[str, str]:
    """Parameters of as many on both sides that have the same key, in the order of calls."""
    left, right = _by_key(mine, key, set(known)), _by_key(reference, key, set(known.values()))
    found: dict[str, str] = {}
    for each, names in left.items():
        if len(right.get(each, [])) == len(names):
            found.update(zip(names, right[each], strict=True))
    return found


def _by_key(
    layers: list[Layer], key: Callable[[tuple[int, ...]], tuple[int, ...]], left_out: set[str]
) -> dict[tuple[int, ...], list[str]]:
    found: dict[tuple[int, ...], list[str]] = {}
    for layer in layers:
        for name, parameter in layer.named.items():
            if name not in left_out:
                found.setdefault(key(parameter.shape), []).append(name)
    return found


def gain(mine: Layer, reference: Layer) -> float:
    """How much speaks for two layers being the same; 0 where they cannot be."""
    if bool(mine.parts) != bool(reference.parts):
        # The joined projection may be a layer, or belong to an attention.
        return _SAME_SHAPES if sorted(mine.shapes.values()) == sorted(reference.shapes.values()) else 0.0
    if mine.module.kind != reference.module.kind or bool(mine.parameters) != bool(reference.parameters):
        return 0.0
    alike = _alike(mine, reference)
    if mine.gives is not None and reference.gives is not None and mine.gives != reference.gives:
        alike *= _OTHER_OUTPUT
    if mine.module.kind != "other" and not same_layer(mine.module.type, reference.module.type):
        alike *= _OTHER_TYPE
    return alike + _BY_NAME * _names_alike(mine, reference)


def _worth(layer: Layer) -> float:
    return _SAME_SHAPES if layer.parameters else _BARE


def _alike(mine: Layer, reference: Layer) -> float:
    if not mine.parameters:
        return _BARE if mine.module.type == reference.module.type or mine.module.kind != "other" else 0.0
    a, b = mine.shapes, reference.shapes
    if a == b or sorted(a.values()) == sorted(b.values()):
        return _SAME_SHAPES
    shared = a.keys() & b.keys()
    if shared and all(_size(a[role]) == _size(b[role]) for role in shared):
        return _PARTLY if a.keys() != b.keys() else 0.9 * _SAME_SHAPES
    return _OTHER_SHAPES if mine.module.kind != "other" else 0.0


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def _names_alike(mine: Layer, reference: Layer) -> float:
    if not mine.words[0] or not reference.words[0]:
        return 0.0
    if mine.module.path == reference.module.path:
        return 1.0
    last = SequenceMatcher(None, mine.words[0], reference.words[0]).ratio()
    return 0.6 * last + 0.3 * SequenceMatcher(None, mine.words[1:], reference.words[1:]).ratio()


def _best_path(gains: list[list[float]]) -> list[tuple[int, int]]:
    """The pairs, in order on both sides, that gain most together."""
    rows, columns = len(gains), len(gains[0]) if gains else 0
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for a in range(rows - 1, -1, -1):
        own, below, gained = best[a], best[a + 1], gains[a]
        for b in range(columns - 1, -1, -1):
            together = gained[b] + below[b + 1] if gained[b] > 0 else 0.0
            own[b] = max(below[b], own[b + 1], together)
    found = []
    a = b = 0
    while a < rows and b < columns:
        if gains[a][b] > 0 and best[a][b] == gains[a][b] + best[a + 1][b + 1]:
            found.append((a, b))
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            a += 1
        else:
            b += 1
    return found


def _renamed(mine: list[Layer], reference: list[Layer], found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Put pairs right whose last names say that neighbours of equal shape were called in another order."""
    groups: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for a, b in found:
        if mine[a].parameters:
            key = (
                mine[a].module.path.rpartition(".")[0], reference[b].module.path.rpartition(".")[0],
                str((mine[a].module.kind, sorted(mine[a].shapes.items()))),
            )  # fmt: skip
            groups.setdefault(key, []).append((a, b))
    settled = dict(found)
    for pairs in groups.values():
        own = {mine[a].words[0]: a for a, _ in pairs}
        other = {reference[b].words[0]: b for _, b in pairs}
        if len(pairs) > 1 and len(own) == len(other) == len(pairs) and own.keys() == other.keys():
            settled.update({own[word]: other[word] for word in own})
    return sorted(settled.items())


def _left_over(mine: list[Layer], reference: list[Layer], found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Layers that are called in another order: both sides have as many left of a kind and shape."""
    left = _groups(mine, {pair[0] for pair in found})
    right = _groups(reference, {pair[1] for pair in found})
    return [
        pair
        for signature, own in left.items()
        if len(own) == len(right.get(signature, []))
        for pair in zip(own, right[signature], strict=True)
    ]


def _groups(layers: list[Layer], taken: set[int]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for place, layer in enumerate(layers):
        if place not in taken and layer.parameters:
            groups.setdefault(_signature(layer), []).append(place)
    return groups


def _by_signature(mine: list[Layer], reference: list[Layer]) -> list[Pair]:
    waiting: dict[str, list[Layer]] = {}
    for layer in reference:
        waiting.setdefault(_signature(layer), []).append(layer)
    pairs = []
    for layer in mine:
        fitting = waiting.get(_signature(layer))
        if fitting:
            pairs.append(Pair(layer, fitting.pop(0), 0.7))
    return pairs


def _signature(layer: Layer) -> str:
    return str((layer.module.kind, sorted(layer.shapes.values())))
