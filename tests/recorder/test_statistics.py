"""Statistics of arrays, against numpy in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from trueline.recorder.statistics import row_spread, statistics

NAMES = ("min", "max", "mean", "std", "l2", "abs_mean", "zero_share", "nan", "inf")
QUICK = settings(max_examples=150)


def expected(values: NDArray[Any]) -> dict[str, float | None]:
    values = values.astype(np.float64).reshape(-1)
    finite = values[np.isfinite(values)]
    counts = {"nan": int(np.isnan(values).sum()), "inf": int(np.isinf(values).sum())}
    if finite.size == 0:
        return {**dict.fromkeys(NAMES[:7]), **counts}
    return {
        "min": finite.min(), "max": finite.max(), "mean": finite.mean(), "std": finite.std(),
        "l2": math.sqrt(np.square(finite).sum()), "abs_mean": np.abs(finite).mean(), "zero_share": (finite == 0).mean(),
        **counts,
    }  # fmt: skip


def check(values: NDArray[Any], *, relative: float = 1e-4) -> None:
    """Compare with numpy; errors are measured against the size of the values."""
    truth = expected(values)
    found = dict(zip(NAMES, statistics(values), strict=True))
    scale = max(abs(truth["min"] or 0.0), abs(truth["max"] or 0.0))
    for name in NAMES:
        one, other = found[name], truth[name]
        if other is None or one is None:
            assert one is other, name
        elif name in {"nan", "inf", "min", "max"}:
            assert one == other, name
        elif name == "zero_share":
            assert one == pytest.approx(other, abs=1e-9), name
        elif name == "l2":
            assert one == pytest.approx(other, rel=relative, abs=1e-42), name
        else:
            assert one == pytest.approx(other, rel=relative, abs=relative * scale), name


def test_the_types_are_those_of_a_row() -> None:
    for values in (np.ones(3, np.float32), np.array([0.0, -1.0, math.nan]), np.zeros(0)):
        assert {type(number) for number in statistics(values)} <= {float, int, type(None)}


shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=30)
dtypes = st.sampled_from([np.float32, np.float64])


@given(dtypes, shapes, st.data())
@QUICK
def test_ordinary_numbers(dtype: Any, shape: tuple[int, ...], data: st.DataObject) -> None:
    ordinary = st.floats(2.0**-50, 2.0**50, width=32) | st.floats(-(2.0**50), -(2.0**-50), width=32) | st.just(0.0)
    check(data.draw(arrays.arrays(dtype, shape, elements=ordinary)))


@given(arrays.arrays(np.float32, shapes, elements=st.floats(width=32)))
@example(np.array([3e38, 3e38], np.float32))
@example(np.array([1e-45, -1e-45], np.float32))
@example(np.array([3.4e38, -3.4e38, 1e-45, math.nan, math.inf], np.float32))
@QUICK
def test_all_numbers_of_single_precision(values: NDArray[Any]) -> None:
    check(values)


@given(arrays.arrays(np.float32, shapes, elements=st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -2.5])))
@QUICK
def test_what_is_not_a_number_is_counted_and_left_out(values: NDArray[Any]) -> None:
    check(values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 1.0, -3.7, 0.1, 1e30, 1e-30, 1e-44, -3e38])
@pytest.mark.parametrize("count", [1, 7, 10_000])
def test_constants_have_no_spread(value: float, count: int, dtype: Any) -> None:
    values = np.full(count, value, dtype)
    check(values)
    assert statistics(values)[3] == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mean", [1.0, 1e3, -1e5])
@pytest.mark.parametrize("std", [1.0, 1e-1, 1e-2])
def test_the_spread_around_a_large_mean(mean: float, std: float, dtype: Any) -> None:
    values = (np.random.default_rng(0).standard_normal(50_000) * std + mean).astype(dtype)
    assert statistics(values)[3] == pytest.approx(values.astype(np.float64).std(), rel=1e-2)
    check(values)


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e-20, 1e-18, 1e-10, 1.0, 1e10, 1e18, 1e25, 1e37])
@pytest.mark.parametrize("count", [3, 1000])
def test_every_size_of_number(scale: float, count: int) -> None:
    values = (np.random.default_rng(1).uniform(-1, 1, count) * scale).astype(np.float32)
    check(values)
    truth = values.astype(np.float64)
    assert statistics(values)[3] == pytest.approx(truth.std(), rel=1e-3)
    assert statistics(values)[4] == pytest.approx(math.sqrt(np.square(truth).sum()), rel=1e-4)


def test_many_small_numbers_beside_a_large_one() -> None:
    values = np.full(100_000, 1e-3, np.float32)
    values[500] = 1e4
    check(values)


def test_views() -> None:
    values = np.random.default_rng(2).standard_normal((40, 30)).astype(np.float32)
    check(values.T)
    check(values[::3, ::2])
    check(np.broadcast_to(np.float32(2.5), (5, 4)))


@given(arrays.arrays(np.float32, arrays.array_shapes(min_dims=0, max_dims=3, max_side=6), elements=st.floats(-9, 9, width=32)))
@QUICK
def test_row_spread(values: NDArray[Any]) -> None:
    found = row_spread(values)
    if values.ndim < 2 or len(values) < 2:
        assert found is None
        return
    assert found == max(float(np.ptp(column)) for column in values.reshape(len(values), -1).T)
    assert (found == 0) == all(np.array_equal(values[0], row) for row in values)


@given(arrays.arrays(np.float64, shapes, elements=st.floats(-1e150, -1e-150) | st.floats(1e-150, 1e150) | st.just(0.0)))
@example(np.array([-2e-311, 1e15]))
@QUICK
def test_double_precision(values: NDArray[Any]) -> None:
    check(values)


@pytest.mark.parametrize("values", [[math.inf, -math.inf], [math.inf, math.inf], [math.nan, 1.0], [3e38, -3e38]])
def test_row_spread_of_what_went_wrong_warns_nobody(values: list[float]) -> None:
    found = row_spread(np.array([[value] for value in values], np.float32))
    assert found is not None
    assert not math.isfinite(found)


def test_row_spread_of_nothing() -> None:
    assert row_spread(np.zeros((3, 0))) is None
