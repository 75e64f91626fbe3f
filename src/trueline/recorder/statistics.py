"""Statistics of an array: what is kept of a tensor that is not kept whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

# min, max, mean, std, L2, mean of absolutes, share of zeros, NaN count, Inf count.
Number = float | None
Statistics = tuple[Number, Number, Number, Number, Number, Number, Number, int, int]
NOTHING: tuple[None, None, None, None, None, None, None] = (None, None, None, None, None, None, None)

# Above this share of the mean square in the square of the mean, the quick formula for the variance loses too many digits.
CANCELLATION = 0.99
# Below this, squares of float32 values were rounded to denormal numbers or to zero.
SMALLEST_SQUARE = 1e-30
# Outside of these, sums or squares of float32 values may be infinite or rounded to zero.
_SMALLEST, _LARGEST = 1e-15, 1e15


def statistics(values: NDArray[Any]) -> Statistics:
    """The numbers of a row of `tensor_stat`, over the finite values of a float32 or float64 array."""
    flat = values.reshape(-1)
    if flat.size == 0:
        return *NOTHING, 0, 0
    low, high = float(flat.min()), float(flat.max())
    nan = inf = 0
    if not (math.isfinite(low) and math.isfinite(high)):
        nan, inf = int(np.isnan(flat).sum()), int(np.isinf(flat).sum())
        flat = flat[np.isfinite(flat)]
        if flat.size == 0:
            return *NOTHING, nan, inf
        low, high = float(flat.min()), float(flat.max())
    count = flat.size
    zeros = 1.0 - np.count_nonzero(flat) / count if low <= 0 <= high else 0.0
    largest, scale = max(-low, high), 1.0
    if largest > 0 and not _SMALLEST < largest < _LARGEST:
        flat, scale = flat.astype(np.float64) / largest, largest
    mean = float(flat.sum()) / count
    square = float(np.dot(flat, flat))
    mean_square = square / count
    if mean * mean > CANCELLATION * mean_square:
        std = float(flat.std(dtype=np.float64)) if high > low else 0.0
    else:
        std = math.sqrt(mean_square - mean * mean)
    absolute = abs(mean) if low >= 0 or high <= 0 else float(np.abs(flat).sum()) / count
    return low, high, mean * scale, std * scale, math.sqrt(square) * scale, absolute * scale, zeros, nan, inf


def relative_distance(values: NDArray[Any], reference: NDArray[Any]) -> float:
    """How far two arrays of one shape are apart, by the length of the second."""
    apart = float(np.linalg.norm((values.astype(np.float64) - reference).ravel()))
    length = float(np.linalg.norm(reference.astype(np.float64).ravel()))
    return apart / length if length else 0.0 if apart == 0 else math.inf


def row_spread(values: NDArray[Any]) -> float | None:
    """The largest difference between rows (first axis) within any column: 0 when all rows are equal."""
    if values.ndim < 2 or values.shape[0] < 2 or values.size == 0:
        return None
    rows = values.reshape(values.shape[0], -1)
    # Infinite weights are the script's, and so would be a warning about them.
    with np.errstate(over="ignore", invalid="ignore"):
        return float((rows.max(axis=0) - rows.min(axis=0)).max())
