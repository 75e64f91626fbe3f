"""A tensor of a batch feature by feature: ranges and moments, values that stand apart, and padding."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

# Larger tensors are looked at in their first samples: ranges and moments do not need more.
_MOST_VALUES = 1 << 20
_MOST_FEATURES = 4096
_MOST_CHANNELS = 64
_MOST_SPIKES = 32
# Fewer values than these have no range of their own that another could stand apart from.
_LEAST_OTHERS = 8
_LEAST_DISTINCT = 3
_SHORTEST_SEQUENCE = 4
# Sequences are padded when this share of them ends (or begins) with the same value at least twice.
_PADDED_ROWS = 0.2


class Features(msgspec.Struct, frozen=True):
    """See model.FieldStat."""

    axis: int | None
    count: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    nan: int
    inf: int
    spikes: list[dict[str, Any]]
    padding: dict[str, Any] | None


def features(values: NDArray[Any]) -> Features:
    """Look at an array whose first axis counts the samples."""
    if values.size > _MOST_VALUES:
        values = values[: max(1, _MOST_VALUES // max(values[0].size, 1))]
    axis = feature_axis(values.shape)
    table = _table(values, axis)
    finite = np.isfinite(table)
    nan = inf = 0
    if not finite.all():
        nan = int(np.isnan(table).sum())
        inf = int(table.size - finite.sum()) - nan
        numbers = np.where(finite, table, np.nan)
        low, high, mean, std = _moments_with_gaps(numbers, finite)
    else:
        low, high = table.min(axis=0), table.max(axis=0)
        mean, std = table.mean(axis=0, dtype=np.float64), table.std(axis=0, dtype=np.float64)
    spikes = _spikes(table, finite) if values.ndim <= 3 else []
    return Features(
        axis, len(table), low.astype(np.float64), high.astype(np.float64), mean, std, nan, inf, spikes, padding(values)
    )  # fmt: skip


def feature_axis(shape: tuple[int, ...]) -> int | None:
    """The axis that tells features or channels apart, None when all values are of one kind."""
    if len(shape) == 2 and 1 < shape[1] <= _MOST_FEATURES:
        return 1
    if len(shape) == 3:
        axis = 2 if shape[2] <= shape[1] else 1
        return axis if shape[axis] <= _MOST_CHANNELS else None
    if len(shape) >= 4:
        channels_last = shape[-1] in {1, 3, 4} and shape[1] > 4
        axis = len(shape) - 1 if channels_last else 1
        return axis if shape[axis] <= _MOST_CHANNELS else None
    return None


def _table(values: NDArray[Any], axis: int | None) -> NDArray[Any]:
    """One column per feature."""
    if values.dtype.kind in "ub" or values.dtype == np.float16:
        values = values.astype(np.float32)
    elif values.dtype.kind == "i":
        values = values.astype(np.float64)
    if axis is None:
        return values.reshape(-1, 1)
    return np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])


def _moments_with_gaps(numbers: NDArray[Any], finite: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
    """Over the finite values of each column; NaN for a column without any."""
    counts = finite.sum(axis=0)
    some = counts > 0
    low = np.where(some, np.where(finite, numbers, np.inf).min(axis=0), np.nan)
    high = np.where(some, np.where(finite, numbers, -np.inf).max(axis=0), np.nan)
    filled = np.where(finite, numbers, 0.0).astype(np.float64)
    mean = np.where(some, filled.sum(axis=0) / np.maximum(counts, 1), np.nan)
    spread = np.where(finite, filled - np.where(some, mean, 0.0), 0.0)
    std = np.where(some, np.sqrt((spread * spread).sum(axis=0) / np.maximum(counts, 1)), np.nan)
    return low, high, mean, std


def _spikes(table: NDArray[Any], finite: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Values at an end of a feature's range that are further from the others than those are spread themselves."""
    if len(table) < _LEAST_OTHERS + 1:
        return []
    ordered = np.sort(np.where(finite, table, np.inf), axis=0)
    # A quick look at all features at once: an end value that repeats hides the gap from it, so those are looked at too.
    found: list[dict[str, Any]] = []
    last = finite.sum(axis=0) - 1
    columns = np.arange(table.shape[1])
    candidates = columns[(last >= _LEAST_OTHERS) & (ordered[0] < ordered[np.maximum(last, 0), columns])]
    for column in candidates:
        values = ordered[: last[column] + 1, column]
        gaps = np.diff(values)
        # The widest gap must leave all others on one side but for a single repeated value at the end.
        place = int(gaps.argmax())
        if gaps[place] <= 0.5 * (values[-1] - values[0]):
            continue
        found.extend(_spike(int(column), values, place))
        if len(found) >= _MOST_SPIKES:
            break
    return found


def _spike(column: int, values: NDArray[Any], place: int) -> list[dict[str, Any]]:
    below, above = values[: place + 1], values[place + 1 :]
    for apart, others in ((below, above), (above, below)):
        if apart[0] == apart[-1] and len(others) >= _LEAST_OTHERS:
            distinct = int(np.count_nonzero(np.diff(others))) + 1
            if distinct >= _LEAST_DISTINCT:
                return [
                    {
                        "feature": column, "value": float(apart[0]), "count": len(apart),
                        "low": float(others[0]), "high": float(others[-1]), "mean": float(others.mean(dtype=np.float64)),
                        "std": float(others.std(dtype=np.float64)), "distinct": distinct,
                    }
                ]  # fmt: skip
    return []


def padding(values: NDArray[Any]) -> dict[str, Any] | None:
    """What a batch of sequences is filled up with, and on which side; None for what is no sequence, or not filled up."""
    if values.ndim == 2 and values.dtype.kind in "iu" and values.dtype.itemsize > 1:
        steps = values
    elif values.ndim == 3 and values.dtype.kind == "f":
        # A step of padding has one value in all of its features; NaN is equal to nothing.
        steps = np.where((values == values[:, :, :1]).all(axis=2), values[:, :, 0], np.nan)
    else:
        return None
    rows, length = steps.shape
    if rows < 2 or length < _SHORTEST_SEQUENCE:
        return None
    right_value, right = _run(steps[:, ::-1])
    left_value, left = _run(steps)
    sides = [name for name, run in (("left", left), ("right", right)) if run is not None]
    if not sides:
        return None
    empty = np.zeros(rows, dtype=np.int64)
    filled = np.minimum((empty if left is None else left) + (empty if right is None else right), length)
    value = right_value if right is not None else left_value
    return {
        "value": float(value),
        "side": sides[0] if len(sides) == 1 else "both",
        "share": float(filled.sum() / steps.size),
        "rows": int((filled > 0).sum()),
        "lengths": [int(length - filled.max()), int(length - filled.min())],
    }


def _run(steps: NDArray[Any]) -> tuple[float, NDArray[np.int64] | None]:
    """The value that most sequences begin with, and for how many steps each of them does; None when that is chance."""
    first = steps[:, 0]
    known = first[~np.isnan(first)] if first.dtype.kind == "f" else first
    if not len(known):
        return np.nan, None
    candidates, counts = np.unique(known, return_counts=True)
    value = candidates[counts.argmax()]
    run = np.cumprod(steps == value, axis=1).sum(axis=1)
    if np.count_nonzero(run >= 2) < max(2, _PADDED_ROWS * len(run)):
        return float(value), None
    return float(value), run
