"""What makes a recording comparable with another: the same weights, the same batches, nothing drawn at random in the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import Module, Parameter
from trueline.recorder.noise import Noise, own_generator
from trueline.recorder.statistics import relative_distance
from trueline.store import Run, read_tensors
from trueline.store.feed import Feed
from trueline.store.joined_names import content_of

# Kept whole in aligned runs: two steps, and the weights after the second.
ALIGNED_STEPS = frozenset({0, 1, 2})
INITIAL = "initial"
# Targets that a model computes on both sides are not further apart; those of other samples are.
_NEAR = 1e-3
# Inputs that are made alike are not further apart; those that are scaled a little otherwise are.
_SAME = 1e-5

Pairing = Callable[[str, list[Module], list[Parameter]], dict[str, str]]


class OwnError(msgspec.Struct, frozen=True):
    """What a layer adds to what it is given, and what it makes of it. `rounding`: how far what it gives is from the same in
    float64, by its length. `amplification`: by how much more it moves than what went in, where that moves by rounding."""

    rounding: float
    amplification: float


class Alignment:
    """Keeps the weights and batches that a run has, and puts those of a reference in their place.

    `reference` is the run that gives them, recorded with an alignment itself; None for one that others are aligned to. `pair`
    tells for the name, modules and parameters of a tree which parameter of the reference (`root.path`) takes the place of which.
    `perturbed`: all values are one unit in the last place beside, to see how far such noise is carried.
    """

    def __init__(
        self, directory: Path, *, reference: Path | None = None, pair: Pairing | None = None, perturbed: bool = False
    ) -> None:
        self._kept = Feed(directory)
        self._reference = reference
        self._given = None if reference is None else Feed(reference)
        self._pair = pair
        self._perturbed = perturbed
        self._weights: dict[str, NDArray[Any]] = {}
        if reference is not None:
            self._weights = _initial_weights(reference)
        self.noise = Noise()
        self._number = -1
        self._entry: list[NDArray[Any]] = []
        self._used: set[int] = set()
        # Whether the script makes the reference's batches by itself, drawn alike: all that belongs to them is its own then.
        self._made_alike = False
        self._inputs: tuple[int, list[NDArray[Any]]] = (-1, [])
        # Samples in the batch that the script fetched last, and in what took its place.
        self._samples = (1, 1)
        # The first two axes of the reference's inputs, where they are the other way round in mine.
        self._turned: tuple[int, int] | None = None
        self.paired: dict[str, str] = {}
        self._own_errors: dict[str, dict[int, OwnError]] = {}
        self.unpaired: list[str] = []
        self.unfit: str | None = None
        self.fed = 0
        # Batches of which only what the model takes was given: their targets are the script's own.
        self.without_targets = 0
        self._has_targets = True

    # Weights

    def weights(self, root: str, modules: list[Module], parameters: list[Parameter]) -> dict[int, NDArray[Any]]:
        """New content for the parameters of a tree, by their numbers; those that are not in it keep theirs."""
        found: dict[int, NDArray[Any]] = {}
        pairs = {} if self._pair is None else self._pair(root, modules, parameters)
        for parameter in parameters:
            own = f"{root}.{parameter.path}"
            other = pairs.get(own)
            content = None if other is None else content_of(other, self._weights.get)
            if content is not None and content.size == int(np.prod(parameter.shape)):
                found[parameter.id] = content.reshape(parameter.shape)
                self.paired[own] = str(other)
            elif self._given is not None:
                self.unpaired.append(own)
        return found

    def nudged(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values, or their neighbours in floating point where noise is wanted."""
        if not self._perturbed or values.dtype.kind != "f" or not values.size:
            return values
        up = own_generator(values.size).integers(0, 2, values.shape).astype(bool)
        return np.nextafter(values, np.where(up, np.inf, -np.inf).astype(values.dtype))

    @property
    def perturbs(self) -> bool:
        return self._perturbed

    def note_own_error(self, path: str, position: int, own: OwnError) -> None:
        """Keep what a layer (`root.path`) does to what it is given, for the output at this position."""
        self._own_errors.setdefault(path, {})[position] = own

    # Batches

    def fetched(self, fields: list[NDArray[Any]], *, step: int, by_hand: bool = False) -> list[NDArray[Any]] | None:
        """What takes the place of the arrays of a batch to train with, of a loader or made `by_hand`; None when they
        stay."""
        self._flush()
        self.noise.begin()
        self._number += 1
        self._used = set()
        self._entry = fields
        self._made_alike = by_hand and self._is_made_alike(fields, self._number, step)
        if self._made_alike:
            self.fed += 1
            self._has_targets = True
        elif self._given is not None:
            replaced = self._fitted(fields)
            # Of samples that are the same, the targets are too.
            same = replaced is not None and all(map(_is_same, replaced, fields))
            self._has_targets = same or len(fields) > 1 or not self._has_unused()
            if replaced is not None:
                self._entry = [self.nudged(array) for array in replaced]
                return self._entry
        if self._perturbed and (self._made_alike or self._given is None):
            self._entry = [self.nudged(array) for array in fields]
            return self._entry
        return None

    def _is_made_alike(self, fields: list[NDArray[Any]], number: int, step: int) -> bool:
        """Whether these are what the reference's model was given, and not what its loader gave: noise may have been added."""
        if step not in ALIGNED_STEPS:
            return self._made_alike
        given = (self._given.read(number) if self._given is not None else None) or []
        matches = _matched(given, fields)
        if matches is not None and all(_is_same(found, mine) for (_, found), mine in zip(matches, fields, strict=True)):
            return False
        known = [*given, *self._model_inputs(step)]
        varies = any(array.size and np.ptp(array) for array in fields)
        return varies and all(any(_is_same(fitted(other, mine), mine) for other in known) for mine in fields)

    def _model_inputs(self, step: int) -> list[NDArray[Any]]:
        """What the reference's layers were given at a step."""
        if self._reference is None:
            return []
        if self._inputs[0] != step:
            kept = read_tensors(self._reference, step, Run(self._reference).rank)
            self._inputs = (step, [np.array(values) for name, values in kept.items() if name.startswith("input/")])
        return self._inputs[1]

    def took_back(self) -> None:
        """The last batch was not for training after all."""
        self._number -= 1
        self._entry = []

    def target(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """What takes the place of targets that came with no loader, beside the inputs that were fetched last."""
        used = len(self._used)
        found = self.beside(values)
        if len(self._used) == used and self._has_unused():
            self.unfit = self.unfit or f"targets of shape {values.shape} have no counterpart in the reference's batch"
        return found

    def beside(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """What takes the place of something that belongs to the inputs that were fetched last; None when it stays."""
        if self._number < 0:
            return None
        given = None if self._given is None or self._made_alike else self._given.read(self._number)
        if given is None:
            self._entry = [*self._entry, values]
            return None
        fitting = {
            place: found
            for place in reversed(range(len(given)))
            if place not in self._used
            and self._belongs(given[place], values)
            and (found := fitted(self._as_in_mine(given[place]), values)) is not None
        }
        if not fitting:
            return None
        self._has_targets = True
        near = next((place for place, found in fitting.items() if _is_near(values, found)), None)
        if near is not None:
            # It holds that already, or has just been computed by the model.
            self._used.add(near)
            self._entry = [*self._entry, values]
            return None
        place, found = next(iter(fitting.items()))
        self._used.add(place)
        self._entry = [*self._entry, found]
        return found

    def _belongs(self, given: NDArray[Any], values: NDArray[Any]) -> bool:
        """Whether both hold as many values for a sample: targets that a mask picked are not those of whole batches."""
        mine, reference = self._samples
        return given.size * mine == values.size * reference

    def _as_in_mine(self, given: NDArray[Any]) -> NDArray[Any]:
        """One number for each place of a sequence, one after another, in the order of mine."""
        if self._turned is None or given.ndim != 1 or given.size != self._turned[0] * self._turned[1]:
            return given
        return given.reshape(self._turned).T

    def _has_unused(self) -> bool:
        """Whether the reference's batch holds something that was given to nobody."""
        given = None if self._given is None or self._made_alike else self._given.read(self._number)
        return given is not None and len(self._used) < len(given)

    def fits(self, fields: list[NDArray[Any]], step: int) -> bool:
        """Whether these may be the next batch: each of them has a counterpart in the reference's."""
        given = None if self._given is None else self._given.read(self._number + 1)
        return given is None or _matched(given, fields) is not None or self._is_made_alike(fields, self._number + 1, step)

    def _fitted(self, fields: list[NDArray[Any]]) -> list[NDArray[Any]] | None:
        given = None if self._given is None else self._given.read(self._number)
        if given is None:
            return None
        matches = _matched(given, fields)
        if matches is None:
            shapes = [[array.shape for array in arrays] for arrays in (fields, given)]
            self.unfit = self.unfit or f"fields of shapes {shapes[0]} do not fit the reference's, of shapes {shapes[1]}"
            return None
        self._used = {place for place, _ in matches}
        self._samples = next(((len(mine), len(found)) for mine, (_, found) in zip(fields, matches, strict=True)), (1, 1))
        first, taken = fields[0], given[matches[0][0]]
        turned = first.ndim > 1 and first.shape != taken.shape and first.shape[:2] == taken.shape[1::-1]
        self._turned = (taken.shape[0], taken.shape[1]) if turned else None
        self.fed += 1
        return [found for _, found in matches]

    def _flush(self) -> None:
        if self._entry and self._number >= 0:
            self._kept.write(self._number, self._entry)
            self.without_targets += not self._has_targets
        self._entry = []

    def close(self) -> None:
        """Write what is not written yet."""
        self._flush()

    def summary(self) -> dict[str, Any]:
        """What was aligned, and what could not be."""
        return {
            "reference": None if self._reference is None else str(self._reference.absolute()),
            "paired": self.paired,
            "unpaired": self.unpaired,
            "unfit": self.unfit,
            "fed": self.fed,
            "without_targets": self.without_targets,
            "own_errors": self._own_errors,
        }


def _matched(given: list[NDArray[Any]], fields: list[NDArray[Any]]) -> list[tuple[int, NDArray[Any]]] | None:
    """For each field the place and the values of what takes its place: the one at the same place first. None where one has
    none."""
    found: list[tuple[int, NDArray[Any]]] = []
    for place, mine in enumerate(fields):
        used = {other for other, _ in found}
        order = sorted(set(range(len(given))) - used, key=lambda other: (other != place, other))
        match = next(((other, values) for other in order if (values := fitted(given[other], mine)) is not None), None)
        if match is None:
            return None
        found.append(match)
    return found


def _with_own_mark(given: NDArray[Any], mine: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers whose only negative one, which marks what is to be ignored, is called as in mine: -1 or -100. Where mine has
    no mark, it has a mask, and what is to be ignored stays as it is in mine."""
    if given.dtype.kind != "i" or mine.dtype.kind != "i":
        return given
    marks = [np.unique(values[values < 0]) for values in (given, mine)]
    if [len(each) for each in marks] == [1, 0] and given.size == mine.size:
        return np.where(given == marks[0][0], mine.reshape(given.shape), given)
    if [len(each) for each in marks] != [1, 1]:
        return given
    return np.where(given == marks[0][0], marks[1][0], given)


def _is_near(values: NDArray[Any], other: NDArray[Any], limit: float = _NEAR) -> bool:
    if values.shape != other.shape:
        return False
    if values.dtype.kind != "f":
        return bool(np.array_equal(values, other))
    return relative_distance(values, other) < limit


def _is_same(values: NDArray[Any] | None, other: NDArray[Any]) -> bool:
    return values is not None and _is_near(values, other, _SAME)


def fitted(given: NDArray[Any], mine: NDArray[Any]) -> NDArray[Any] | None:
    """The given values in the shape and type of mine, when they mean the same: as many per sample, of the same sort."""
    if given.ndim == 0 or mine.ndim == 0 or (given.dtype.kind == "f") != (mine.dtype.kind == "f"):
        return None
    given = _with_own_mark(given, mine)
    if (
        given.shape != mine.shape
        and given.ndim == mine.ndim > 1
        and given.shape == (mine.shape[1], mine.shape[0], *mine.shape[2:])
    ):
        # Samples first and time first.
        return np.ascontiguousarray(given.swapaxes(0, 1).astype(mine.dtype))
    if given.shape != mine.shape and same_samples(given, mine):
        # The same samples, laid out otherwise, as in patches.
        return mine
    if np.prod(given.shape[1:]) != np.prod(mine.shape[1:]):
        # Targets of sequences, one after another or sequence by sequence.
        return given.reshape(mine.shape).astype(mine.dtype) if given.size == mine.size else None
    values = given
    if given.ndim == mine.ndim == 4 and given.shape[1:] != mine.shape[1:]:
        # Channels first and channels last.
        for axes in ((0, 2, 3, 1), (0, 3, 1, 2)):
            if tuple(given.shape[axis] for axis in axes[1:]) == mine.shape[1:]:
                values = given.transpose(axes)
                break
    return np.ascontiguousarray(values.reshape(given.shape[0], *mine.shape[1:]).astype(mine.dtype))


def same_samples(given: NDArray[Any], mine: NDArray[Any]) -> bool:
    """Whether each sample holds the same values, in whatever order."""
    if given.size != mine.size or len(given) != len(mine) or not given.size or not np.ptp(mine):
        return False
    return _is_same(*(np.sort(values.reshape(len(values), -1)).astype(mine.dtype) for values in (given, mine)))


def _initial_weights(reference: Path) -> dict[str, NDArray[Any]]:
    prefix = f"{INITIAL}/"
    kept = read_tensors(reference, 0, Run(reference).rank)
    return {
        name.removeprefix(prefix).rpartition("/")[0]: np.array(values) for name, values in kept.items() if name.startswith(prefix)
    }
