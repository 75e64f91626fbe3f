"""Two aligned runs side by side: how far their tensors are apart, and how far they may be."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trueline.compare.runs.kept import Kept
from trueline.compare.runs.layers import layers_of_both
from trueline.compare.runs.measure import Distance, Floor, OwnErrors, distance
from trueline.compare.runs.pairing import Pair, loose_pairs, shared_parameters
from trueline.knowledge import same_layer
from trueline.store import Run

_FIRST = 0
_FORWARD = {"input", "output"}
# Axes of a batch of sequences: samples, places, features.
_WITH_ROWS = 3
_POSITIONS_PER_CALL = 4
# What units that switch do to gradients is carried further by the layers before them.
_TIMES_SWITCHED = 1.5


class Sides:
    """Two aligned runs and what is needed to set them side by side."""

    def __init__(self, mine: Run, reference: Run, perturbed: Run | None, pairs: list[Pair], *, half: str | None) -> None:
        self.mine = mine
        self.reference = reference
        self.pairs = pairs
        self.layers = layers_of_both(mine, reference)
        self.loose = loose_pairs(*self.layers, pairs)
        self.kept = Kept(mine)
        self.expected = Kept(reference)
        self.floor = Floor(self.expected, None if perturbed is None else Kept(perturbed), half=half)
        self._own_errors = OwnErrors(mine, reference)
        self._half = half
        self._switched: dict[int, dict[int, float]] = {}

    def apart(self, step: int, role: str, mine: str, reference: str, position: int = 0) -> tuple[Distance, float] | None:
        """How far a tensor is off, and how far it may be; None where one side has none."""
        a, b = self.kept.get(step, role, mine, position), self.expected.get(step, role, reference, position)
        if a is None or b is None:
            return None
        found, floor = distance(a, b), self.floor.of(step, role, reference, position)
        if found.relative > floor and role in _FORWARD:
            counted = self._rows_that_count(step, mine, reference, position)
            if counted is not None and a.shape[:-1] == b.shape[:-1] == counted.shape:
                found = distance(a[counted], b[counted])
        return found, floor

    def _rows_that_count(self, step: int, mine: str, reference: str, position: int) -> NDArray[np.bool_] | None:
        """Which rows of what a layer gives get a gradient on one side at least: the rest is padding, and may hold anything. None
        where that is not known or all of them do."""
        a, b = self.kept.get(step, "output_grad", mine, position), self.expected.get(step, "output_grad", reference, position)
        if a is None or b is None or a.shape != b.shape or a.ndim < _WITH_ROWS:
            return None
        counted = np.any(a, axis=-1) | np.any(b, axis=-1)
        return counted if counted.any() and not counted.all() else None

    def is_off(self, step: int, role: str, pair: Pair) -> tuple[Distance, float] | None:
        """The first tensor of a pair of layers that is further off than noise explains; None where all are near."""
        if not pair.computes_the_same:
            return None
        for position in self._comparable(step, role, pair):
            found = self.apart(step, role, pair.mine.path, pair.reference.path, position)
            if found is None or found[0].relative <= found[1] or (found[0].other_shape and _cut_otherwise(pair)):
                continue
            if role == "output_grad" and found[0].relative <= self.switched(step, pair):
                continue
            return found
        return None

    def _comparable(self, step: int, role: str, pair: Pair) -> list[int]:
        """The positions of what belongs together. One activation may serve in all places of one side, and be several of the
        other: then their later calls are others."""
        own, expected = (
            kept.positions(step, role, path) for kept, path in ((self.kept, pair.mine.path), (self.expected, pair.reference.path))
        )
        if pair.mine.parameters or own == expected:
            return expected
        return [position for position in expected if position < _POSITIONS_PER_CALL]

    def parameters(self) -> Iterator[tuple[Pair | None, str, str, bool]]:
        """The parameters that both sides have: their layers where these are paired, their names, and whether they are buffers."""
        for pair in self.pairs:
            for mine, reference in shared_parameters(pair):
                yield pair, f"{pair.mine.root}.{mine.path}", f"{pair.reference.root}.{reference.path}", mine.buffer
        # Of single numbers in a row without a layer nobody knows whether their gradients cancel.
        shapes = {name: each.shape for layer in self.layers[1] for name, each in layer.named.items()}
        for own, other in self.loose.items():
            if not self._half and len(shapes[other]) > 1:
                yield None, own, other, False

    def gets_none(self, step: int, mine: str, reference: str) -> bool:
        """Whether a parameter that is trained gets a gradient in the reference and none in mine, where gradients that are there
        are all known."""
        expected = self.expected.get(step, "gradient", reference)
        trained = {name for layer in self.layers[0] for name, each in layer.named.items() if each.trainable}
        if self.mine.framework != "pytorch" or expected is None or not np.any(expected) or mine not in trained:
            return False
        return self.kept.get(step, "gradient", mine) is None and any(
            self.kept.get(step, "gradient", name) is not None for name in trained
        )

    def knows_gradients(self, step: int) -> bool:
        """Whether the gradients of what both sides train are known on both sides."""
        known = [
            self.kept.get(step, "gradient", mine) is not None
            for _, mine, reference, buffer in self.parameters()
            if not buffer and self.expected.get(step, "gradient", reference) is not None
        ]
        return bool(known) and all(known)

    def cancelled(self, step: int, pair: Pair | None, parameter: str) -> float:
        """How far rounding alone may move the gradient of a parameter of the reference, by its length. A bias before a
        normalisation gets a sum of gradients that cancel: what is left is rounding."""
        gradient = self.expected.get(step, "gradient", parameter)
        if pair is None or gradient is None or gradient.ndim > 1:
            return 0.0
        path = pair.reference.path
        added = [
            float(np.linalg.norm(values.astype(np.float64)))
            for position in self.expected.positions(step, "output_grad", path)
            if (values := self.expected.get(step, "output_grad", path, position)) is not None
        ]
        length = float(np.linalg.norm(gradient.astype(np.float64)))
        return self.floor.rounding * math.hypot(*added) / length if length else 0.0

    def switched(self, step: int, pair: Pair | None) -> float:
        """How far units that are on on one side only may move the gradients of a layer, by their length. Rounding switches units
        whose values are next to nothing: in half precision many, and their gradients are there or not."""
        if step not in self._switched:
            self._switched[step] = {}
            square = 0.0
            for each in reversed(self.pairs):
                square += self._square_of_switched(step, each)
                self._switched[step][each.mine.module.id] = _TIMES_SWITCHED * math.sqrt(square)
        found = self._switched[step]
        return max(found.values(), default=0.0) if pair is None else found.get(pair.mine.module.id, 0.0)

    def _square_of_switched(self, step: int, pair: Pair) -> float:
        paths = (self.kept, pair.mine.path), (self.expected, pair.reference.path)
        outputs, gradients = ([kept.get(step, role, path) for kept, path in paths] for role in ("output", "output_grad"))
        a, b, own, expected = *outputs, *gradients
        if a is None or b is None or own is None or expected is None or not np.any(expected):
            return 0.0
        if not a.shape == b.shape == own.shape == expected.shape or self.is_off(step, "output", pair) is not None:
            return 0.0
        switches = (a > 0) != (b > 0)
        length = float(np.linalg.norm(expected.astype(np.float64)))
        return sum(float(np.linalg.norm(values[switches].astype(np.float64))) ** 2 for values in (own, expected)) / length**2

    def injected(self, pair: Pair) -> tuple[Distance, float] | None:
        """How far off is what a pair of layers gives at the first step, and how far it may be by what went in and by their own
        rounding: where it is more, the layers themselves do not do the same. None where that was not measured."""
        if not pair.computes_the_same or pair.mine.parts or pair.reference.parts:
            return None
        given = [
            found
            for position in self.expected.positions(_FIRST, "input", pair.reference.path)
            if (found := self.apart(_FIRST, "input", pair.mine.path, pair.reference.path, position)) is not None
        ]
        found = self.apart(_FIRST, "output", pair.mine.path, pair.reference.path)
        if found is None or not given or not all(math.isfinite(each.relative) for each in (found[0], *(one[0] for one in given))):
            return None
        came_in = max(each.relative for each, _ in given)
        allowed = self._own_errors.allowed(pair.mine.path, pair.reference.path, 0, came_in)
        return None if allowed is None else (found[0], allowed)


def _cut_otherwise(pair: Pair) -> bool:
    """Whether two layers with the same parameters may give other parts of the same: modules of the authors' own, a cell of one
    step against a layer of all, a bag of embeddings."""
    return pair.mine.module.kind == "other" or not same_layer(pair.mine.module.type, pair.reference.module.type)
