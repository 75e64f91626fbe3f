"""What tensors hold as evidence of which belong together: sketches of their values, cheap to make and to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.recorder.sketch import sketch

# So many values of a tensor are looked at, the same ones on both sides.
_MOST_VALUES = 1 << 22
_FEWEST_VALUES = 4
# Two tensors that have nothing to do with each other are 1.4 times their own length apart.
_NEAR = 0.5
_EQUAL = 1e-5
# A second candidate that is nearly as close makes it a guess.
_CLEARLY = 2.0

Read = Callable[[], NDArray[Any]]


class Sketch(msgspec.Struct, frozen=True):
    """The values of a tensor around their mean: `turned` is that of the transposed matrix."""

    count: int
    straight: NDArray[np.float32]
    turned: NDArray[np.float32] | None


class Likeness(msgspec.Struct, frozen=True):
    """`distance` is relative to the length of the tensors: 0 equal, 1.4 unrelated."""

    distance: float
    transposed: bool

    @property
    def equal(self) -> bool:
        return self.distance <= _EQUAL


def sketch_of(read: Read) -> Sketch | None:
    """None where the values are no evidence: constant, or too few."""
    values = np.asarray(read())
    if values.size < _FEWEST_VALUES or values.dtype.kind not in "fiu":
        return None
    straight = _centred(values)
    if straight is None:
        return None
    return Sketch(values.size, straight, _centred(values.T) if values.ndim == 2 else None)


def alike(mine: dict[str, Sketch], reference: dict[str, Sketch]) -> list[tuple[str, str, Likeness]]:
    """The pairs of tensors that are each other's nearest, near enough, and clearly nearer than any other."""
    if not mine or not reference:
        return []
    straight, turned = _distances(list(mine.values()), list(reference.values()))
    nearest = np.minimum(straight, turned)
    names = list(mine), list(reference)
    found = []
    for one, other in np.argwhere(nearest <= _NEAR):
        distance = float(nearest[one, other])
        rivals = np.concatenate([np.delete(nearest[one], other), np.delete(nearest[:, other], one)])
        if not rivals.size or float(rivals.min()) > max(_EQUAL, _CLEARLY * distance):
            is_turned = bool(turned[one, other] < straight[one, other])
            found.append((names[0][one], names[1][other], Likeness(distance, transposed=is_turned)))
    return found


def _distances(mine: list[Sketch], reference: list[Sketch]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Between all tensors of both sides: as they are, and with the matrices of one side transposed."""
    ours, theirs = (np.stack([each.straight for each in side]).astype(np.float64) for side in (mine, reference))
    straight = _apart(ours, theirs)
    if any(each.turned is None for each in (*mine, *reference)):
        return straight, np.full_like(straight, np.inf)
    turned_ours, turned_theirs = (np.stack([each.turned for each in side]).astype(np.float64) for side in (mine, reference))  # type: ignore[misc]
    return straight, np.maximum(_apart(turned_ours, theirs), _apart(ours, turned_theirs))


def _apart(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.norm(ours[:, None, :] - theirs[None, :, :], axis=2))


def _centred(values: NDArray[Any]) -> NDArray[np.float32] | None:
    rest = max(1, values.size // max(1, len(values)))
    rows = max(1, _MOST_VALUES // rest)
    step = -(-len(values) // rows)
    part = np.nan_to_num(
        np.ascontiguousarray(values[::step], dtype=np.float32).reshape(-1)[:_MOST_VALUES], posinf=0.0, neginf=0.0
    )
    mean = float(part.mean(dtype=np.float64))
    around = part - np.float32(mean)
    spread = float(np.sqrt(np.mean(np.square(around, dtype=np.float64))))
    if spread <= 1e-6 * abs(mean) or spread == 0.0:
        return None
    return sketch(around / np.float32(spread)) / np.float32(np.sqrt(part.size))
