"""Which parameter of one side is which of the other, without a map: by names, shapes, order and content.

What is sure comes first, and each step only sees what the steps before have left. No step depends on which side is called
mine. What is left at the end is told as unmatched, and never counts as equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from numpy.typing import NDArray

from trueline.compare.conventions import canonical_names, is_no_parameter, role, words_of
from trueline.compare.files.content import Sketch, alike, sketch_of
from trueline.compare.fused import fused_parameters
from trueline.errors import TruelineError

# More tensors of one size than these are told apart by name and order alone: all pairs of them would be looked at.
_MOST_ALIKE = 256


class Candidate(msgspec.Struct, frozen=True):
    """A parameter of one side; `order` is its place there, `content` reads its values where they are at hand."""

    name: str
    shape: tuple[int, ...]
    dtype: str = ""
    order: int = 0
    content: Callable[[], NDArray[Any]] | None = None


class Pair(msgspec.Struct, frozen=True):
    """`layout` is `same`, `transposed`, or `reshaped` where only dimensions of length 1 differ. `how`: `map`, `name`,
    `convention`, `content`, `words`, `layer`, `order`."""

    mine: str
    reference: str
    confidence: float
    how: str
    layout: str = "same"


class Pairing(msgspec.Struct):
    """What belongs together, what has no counterpart, and what was left out because it is no parameter."""

    pairs: list[Pair]
    unmatched_mine: list[str]
    unmatched_reference: list[str]
    left_out_mine: list[str]
    left_out_reference: list[str]
    suggestions: list[str]


def layout_of(one: tuple[int, ...], other: tuple[int, ...]) -> str | None:
    """How one shape becomes the other; None if it cannot."""
    if one == other:
        return "same"
    if _long_dimensions(one) == _long_dimensions(other):
        # MindSpore's Conv1d has a dimension more than PyTorch's.
        return "reshaped"
    return "transposed" if len(one) == 2 and one == other[::-1] else None


def pair_parameters(
    mine: Iterable[Candidate],
    reference: Iterable[Candidate],
    fixed: dict[str, str] | None = None,
    *,
    every: bool = False,
) -> Pairing:
    """Pair two sides. `fixed` holds pairs that are known; with `every`, counters and states of optimizers need a
    counterpart like the rest."""
    work = _Work(list(mine), list(reference))
    work.take_fixed(fixed or {})
    work.take_same_names()
    if not work.settled_by_names(every=every):
        work.take_alike()
    work.take_proposed()
    if not every:
        work.leave_out()
    work.take_equal("words", 0.95, words_of)
    work.take_same_ending()
    work.take_in_order()
    return work.pairing()


class _Work:
    def __init__(self, mine: list[Candidate], reference: list[Candidate]) -> None:
        self.sides = ({each.name: each for each in mine}, {each.name: each for each in reference})
        self.open = (dict(self.sides[0]), dict(self.sides[1]))
        self.canonical = (canonical_names(self.open[0]), canonical_names(self.open[1]))
        self.pairs: list[Pair] = []
        self.left_out: tuple[list[str], list[str]] = ([], [])
        self.proposed: list[Pair] = []

    def accept(self, pair: Pair) -> None:
        if pair.mine in self.open[0] and pair.reference in self.open[1]:
            del self.open[0][pair.mine], self.open[1][pair.reference]
            self.pairs.append(pair)

    def link(self, one: str, other: str, confidence: float, how: str) -> Pair | None:
        layout = layout_of(self.sides[0][one].shape, self.sides[1][other].shape)
        return None if layout is None else Pair(one, other, confidence if layout == "same" else confidence * 0.9, how, layout)

    def take_fixed(self, fixed: dict[str, str]) -> None:
        for one, other in fixed.items():
            for name, side, word in ((one, 0, "left"), (other, 1, "right")):
                if name not in self.open[side]:
                    known = ", ".join(list(self.sides[side])[:5])
                    raise TruelineError(
                        f"The map names {name!r}, which is not on the {word} side or stands there twice. It has {known} …"
                    )
            pair = self.link(one, other, 1.0, "map")
            if pair is None:
                shapes = self.sides[0][one].shape, self.sides[1][other].shape
                raise TruelineError(
                    f"The map pairs {one} with {other}, whose shapes are {shapes[0]} and {shapes[1]}. Correct the map."
                )
            self.accept(msgspec.structs.replace(pair, confidence=1.0))

    def take_same_names(self) -> None:
        """Proposals only: where the two sides are not built alike, equal names may stand for different layers."""
        for name in [name for name in self.open[0] if name in self.open[1]]:
            pair = self.link(name, name, 1.0, "name")
            if pair is not None:
                self.proposed.append(pair)
        named = {pair.mine for pair in self.proposed}
        keys = tuple(
            _unique({name: canonical for name, canonical in self.canonical[side].items() if name not in named}) for side in (0, 1)
        )
        for key in keys[0].keys() & keys[1].keys():
            if keys[0][key] in self.open[0] and keys[1][key] in self.open[1]:
                pair = self.link(keys[0][key], keys[1][key], 0.98, "convention")
                if pair is not None:
                    self.proposed.append(pair)

    def settled_by_names(self, *, every: bool) -> bool:
        matched = {pair.mine for pair in self.proposed}, {pair.reference for pair in self.proposed}
        return all(name in matched[side] or (not every and is_no_parameter(name)) for side in (0, 1) for name in self.open[side])

    def take_proposed(self) -> None:
        for pair in self.proposed:
            self.accept(pair)
        self.complete_layers()

    def take_alike(self) -> None:
        """Equal or nearly equal content is the strongest evidence there is."""
        for names in self._by_shape():
            if not 0 < len(names[0]) <= _MOST_ALIKE or not 0 < len(names[1]) <= _MOST_ALIKE:
                continue
            sketches = self._sketches(0, names[0]), self._sketches(1, names[1])
            for one, other, found in alike(*sketches):
                pair = self.link(one, other, 0.99 if found.equal else 0.9, "content")
                if pair is not None:
                    layout = "transposed" if found.transposed else pair.layout
                    self.accept(msgspec.structs.replace(pair, layout=layout, confidence=0.99 if found.equal else 0.9))
        self.complete_layers()

    def complete_layers(self) -> None:
        """What else two layers hold belongs together if one of their parameters does: biases are often all zero."""
        partners: dict[str, set[str]] = defaultdict(set)
        back: dict[str, set[str]] = defaultdict(set)
        for pair in self.pairs:
            partners[_layer(pair.mine)].add(_layer(pair.reference))
            back[_layer(pair.reference)].add(_layer(pair.mine))
        theirs = {(_layer(name), role(name)): name for name in self.open[1]}
        for name in list(self.open[0]):
            layers = partners.get(_layer(name), set())
            if len(layers) != 1 or len(back[next(iter(layers))]) != 1:
                continue
            other = theirs.get((next(iter(layers)), role(name)))
            completed = None if other is None or other not in self.open[1] else self.link(name, other, 0.9, "layer")
            if completed is not None:
                self.accept(completed)

    def leave_out(self) -> None:
        for side in (0, 1):
            for name in [name for name in self.open[side] if is_no_parameter(name)]:
                del self.open[side][name]
                self.left_out[side].append(name)

    def take_equal(self, how: str, confidence: float, key: Callable[[str], Any]) -> None:
        keys = tuple(_unique({name: key(self.canonical[side][name]) for name in self.open[side]}) for side in (0, 1))
        for found in keys[0].keys() & keys[1].keys():
            pair = self.link(keys[0][found], keys[1][found], confidence, how)
            if pair is not None:
                self.accept(pair)
        self.complete_layers()

    def take_same_ending(self) -> None:
        """Names that end in the same words, the longest ending first: a model within another has words in front."""
        words = tuple({name: words_of(self.canonical[side][name]) for name in self.open[side]} for side in (0, 1))
        longest = max((len(each) for side in words for each in side.values()), default=0)
        for length in range(longest, 1, -1):
            ends = tuple(
                _unique(
                    {
                        name: each[-length:]
                        for name, each in words[side].items()
                        if name in self.open[side] and len(each) >= length
                    }
                )
                for side in (0, 1)
            )
            for end in ends[0].keys() & ends[1].keys():
                pair = self.link(ends[0][end], ends[1][end], 0.8, "words")
                if pair is not None and pair.layout == "same":
                    self.accept(pair)
        self.complete_layers()

    def take_in_order(self) -> None:
        """Parameters of the same role and shape, as many on both sides: the first belongs to the first."""
        groups: dict[tuple[str, tuple[int, ...]], tuple[list[Candidate], list[Candidate]]] = defaultdict(lambda: ([], []))
        for side in (0, 1):
            for candidate in self.open[side].values():
                groups[role(candidate.name), candidate.shape][side].append(candidate)
        for ours, theirs in groups.values():
            if len(ours) == len(theirs):
                ordered = (sorted(each, key=lambda candidate: (candidate.order, candidate.name)) for each in (ours, theirs))
                for one, other in zip(*ordered, strict=True):
                    self.accept(Pair(one.name, other.name, 0.75 if len(ours) == 1 else 0.6, "order"))

    def pairing(self) -> Pairing:
        place = {name: number for number, name in enumerate(self.sides[0])}
        return Pairing(
            sorted(self.pairs, key=lambda pair: place[pair.mine]),
            list(self.open[0]),
            list(self.open[1]),
            self.left_out[0],
            self.left_out[1],
            fused_parameters(_shapes(self.open[0]), _shapes(self.open[1]))
            + fused_parameters(_shapes(self.open[1]), _shapes(self.open[0])),
        )

    def _by_shape(self) -> list[tuple[list[str], list[str]]]:
        """Names of both sides whose shapes fit, a matrix and its transposed form together."""
        groups: dict[tuple[int, ...], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
        for side in (0, 1):
            for candidate in self.open[side].values():
                key = _long_dimensions(candidate.shape)
                groups[tuple(sorted(key)) if len(candidate.shape) == 2 else key][side].append(candidate.name)
        return list(groups.values())

    def _sketches(self, side: int, names: list[str]) -> dict[str, Sketch]:
        found = {}
        for name in names:
            read = self.sides[side][name].content
            made = None if read is None else sketch_of(read)
            if made is not None:
                found[name] = made
        return found


def _long_dimensions(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def _shapes(side: dict[str, Candidate]) -> dict[str, tuple[int, ...]]:
    return {name: candidate.shape for name, candidate in side.items()}


def _unique(keys: dict[str, Any]) -> dict[Any, str]:
    """The names by what they are called, without those that are called the same."""
    found: dict[Any, list[str]] = defaultdict(list)
    for name, key in keys.items():
        found[key].append(name)
    return {key: names[0] for key, names in found.items() if len(names) == 1}
