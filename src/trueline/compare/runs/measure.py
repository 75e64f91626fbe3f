"""How far two tensors are apart, and how far they may be: a noise floor that is measured, not a constant.

The floor of a tensor is how far the same tensor of the reference moves when all weights and inputs move by one unit in the last
place. What a computation does to noise (a difference of nearly equal numbers, a division by a small one) is thus part of
it. What single layers add to it is known from their replay in float64.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from trueline.compare.runs.kept import Array, Kept
from trueline.recorder.alignment import OwnError
from trueline.store import Run

# How many times its floor a tensor may be off: kernels of two frameworks round differently in every operation.
_TIMES_FLOOR = 12.0
# The floor is at least as large as this, by the coarsest type that the model computes in; in float32 some units in the last place
# more than one, since functions such as tanh are approximated.
_EPSILON = 2.0**-23
_LEAST = {"float16": 2.0**-9, "bfloat16": 2.0**-6, "float32": 24 * _EPSILON, "float64": 24 * _EPSILON}


# Gradients are sums of what nearly cancels, optimizers divide by roots of small numbers, and each framework does so in its own
# order. How many times more they may be off for that: in units in the last place, and of what was measured.
_TIMES_FOR_UPDATES = 10.0
_TIMES_FOR_GRADIENTS = 4.0
_UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
_TIMES_ROUNDED = 8.0
_GRADIENTS = {"output_grad", "gradient"}
# Two roundings add up at most. An error that came in may lie where a layer carries it further than noise that lies anywhere.
_TIMES_ROUNDING = 1.5
_TIMES_INHERITED = 8.0


# How axes may be laid out otherwise, the likely first.
_ORDERS: dict[int, tuple[tuple[int, ...], ...]] = {
    2: ((1, 0),), 3: ((1, 0, 2), (0, 2, 1)), 4: ((0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3)),
}  # fmt: skip


class Distance(msgspec.Struct, frozen=True):
    """`relative` is the L2 norm of the difference over that of the reference; infinite where only one side has NaN, infinities,
    or another shape. `factor` is the number that mine would have to be divided by to come nearest to the reference."""

    relative: float
    largest: float
    factor: float
    why: str = ""
    other_shape: bool = False


def distance(mine: Array, reference: Array) -> Distance:
    fitted = in_shape_of(mine, reference)
    if fitted is None:
        return Distance(math.inf, math.inf, math.nan, f"shapes {mine.shape} and {reference.shape}", other_shape=True)
    a, b = fitted.astype(np.float64).ravel(), reference.astype(np.float64).ravel()
    strange = ~np.isfinite(b)
    if not np.array_equal(~np.isfinite(a), strange):
        return Distance(math.inf, math.inf, math.nan, "NaN or infinite on one side only")
    if strange.any():
        if not np.array_equal(np.nan_to_num(a[strange], nan=0.5), np.nan_to_num(b[strange], nan=0.5)):
            return Distance(math.inf, math.inf, math.nan, "other NaN or infinite values")
        a, b = a[~strange], b[~strange]
    if not a.size:
        return Distance(0.0, 0.0, 1.0)
    difference = a - b
    length = float(np.linalg.norm(b))
    apart = float(np.linalg.norm(difference))
    relative = 0.0 if apart == 0 else math.inf if length == 0 else apart / length
    factor = float(a @ b) / (length * length) if length else math.nan
    return Distance(relative, float(np.abs(difference).max()), factor)


def in_shape_of(mine: Array, reference: Array) -> Array | None:
    """My values laid out as the reference's: the same sizes in another order of axes are transposed, else reshaped."""
    if mine.shape == reference.shape:
        return mine
    if mine.size != reference.size:
        return None
    if mine.ndim == reference.ndim and sorted(mine.shape) == sorted(reference.shape) and mine.ndim in _ORDERS:
        fitting = [moved for axes in _ORDERS[mine.ndim] if (moved := mine.transpose(axes)).shape == reference.shape]
        if fitting:
            return fitting[0]
    return mine.reshape(reference.shape)


class Floor:
    """How far tensors of the reference are apart from those of its perturbed repetition."""

    def __init__(self, reference: Kept, perturbed: Kept | None, *, half: str | None = None) -> None:
        self._reference = reference
        self._perturbed = perturbed
        self._least = _LEAST[half or "float32"]
        # Of each number that is added up, with room for those that were rounded before.
        self.rounding = _TIMES_ROUNDED * (_UNITS[half] if half else _EPSILON)
        self._least_of_gradients = self._least if half else _TIMES_FOR_UPDATES * self._least

    def of(self, step: int, role: str, path: str, position: int = 0) -> float:
        """The relative distance that noise alone explains."""
        values = self._reference.get(step, role, path, position)
        moved = None if self._perturbed is None else self._perturbed.get(step, role, path, position)
        if role in _GRADIENTS:
            return max(self._least_of_gradients, _TIMES_FOR_GRADIENTS * self._measured(values, moved))
        return max(self._least, self._measured(values, moved))

    def of_update(self, step: int, path: str) -> float:
        moved = None if self._perturbed is None else self._perturbed.update(step, path)
        values = self._reference.update(step, path)
        floor = max(_TIMES_FOR_UPDATES * self._least, self._measured(values, moved))
        weights = self._reference.get(step, "parameter", path)
        if values is not None and weights is not None and values.size:
            # A small update is the difference of two large weights, each rounded.
            length = float(np.linalg.norm(values))
            rounding = float(np.linalg.norm(weights.astype(np.float64))) * _EPSILON
            floor = max(floor, 4 * rounding / length) if length else floor
        return floor

    def _measured(self, values: Array | None, moved: Array | None) -> float:
        if values is None or moved is None or values.dtype.kind != "f":
            return 0.0
        apart = distance(moved, values).relative
        return _TIMES_FLOOR * apart if math.isfinite(apart) else 0.0


class OwnErrors:
    """What the layers of two aligned runs add to an error by themselves, as their replays in float64 tell."""

    def __init__(self, mine: Run, reference: Run) -> None:
        self._mine, self._reference = (_own_errors(run) for run in (mine, reference))

    def allowed(self, mine: str, reference: str, position: int, given: float) -> float | None:
        """How far two layers that compute the same may be apart in what they give, when they are `given` what is so far apart;
        None where one of them was not replayed."""
        a, b = (errors.get(path, {}).get(position) for errors, path in ((self._mine, mine), (self._reference, reference)))
        if a is None or b is None:
            return None
        return _EPSILON + _TIMES_ROUNDING * (a.rounding + b.rounding) + _TIMES_INHERITED * b.amplification * given


def _own_errors(run: Run) -> dict[str, dict[int, OwnError]]:
    told = run.alignment.get("own_errors", {})
    return msgspec.convert(told, dict[str, dict[int, OwnError]], strict=False)
