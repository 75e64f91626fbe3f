"""How far two tensors are apart, beside the same computed plainly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from trueline.compare.files.tensors import BLOCK, Difference, measure_arrays, tolerance_of

FLOATS = st.sampled_from([np.float16, np.float32, np.float64])


def plain(one: NDArray[Any], other: NDArray[Any]) -> dict[str, float]:
    wide, ref = one.astype(np.float64), other.astype(np.float64)
    apart = wide - ref
    return {
        "max_abs": float(np.abs(apart).max(initial=0.0)),
        "relative_l2": float(np.linalg.norm(apart) / np.linalg.norm(ref)),
        "cosine": float(np.dot(wide, ref) / np.linalg.norm(wide) / np.linalg.norm(ref)),
        "differing": int((wide != ref).sum()),
        "sign_flips": int((np.sign(wide) * np.sign(ref) < 0).sum()),
        "largest": float(max(np.abs(wide).max(), np.abs(ref).max())),
    }


@pytest.mark.parametrize("count", [1, 1000, BLOCK, 3 * BLOCK + 17])
@pytest.mark.parametrize("noise", [1e-6, 1e-2, 3.0])
@pytest.mark.parametrize("types", [("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("f4", "f8"), ("f4", "i4"), ("i8", "i8")])
def test_numbers_beside_the_plain_ones(count: int, noise: float, types: tuple[str, str]) -> None:
    random = np.random.default_rng(count)
    one = (random.normal(size=count) * 10).astype(types[0])
    other = (one + noise * random.normal(size=count)).astype(types[1])
    found, expected = measure_arrays(one, other), plain(one, other)
    for name, value in expected.items():
        if not math.isnan(value):
            assert getattr(found, name) == pytest.approx(value, rel=1e-4, abs=1e-7), name


@given(FLOATS.flatmap(lambda kind: arrays.arrays(kind, st.integers(0, 40), elements={"allow_subnormal": False})))
def test_a_tensor_equals_itself(values: NDArray[Any]) -> None:
    found = measure_arrays(values, values.copy())
    assert (found.equal_bits, found.differing, found.max_abs, found.sign_flips) == (True, 0, 0.0, 0)
    assert found.within(0.0)


@given(arrays.arrays(np.float32, 12), arrays.arrays(np.float32, 12))
def test_both_directions_agree(one: NDArray[Any], other: NDArray[Any]) -> None:
    there, back = measure_arrays(one, other), measure_arrays(other, one)
    for name in ("max_abs", "differing", "sign_flips", "nonfinite_differing", "equal_bits", "largest"):
        assert getattr(there, name) == getattr(back, name)
    assert (there.nan, there.inf) == (back.nan[::-1], back.inf[::-1])


def finite(values: list[float]) -> Difference:
    return measure_arrays(np.array(values, "f4"), np.ones(len(values), "f4"))


def test_nan_against_a_number_is_a_difference() -> None:
    found = finite([1.0, math.nan, math.inf, 1.0])
    assert (found.nan, found.inf, found.nonfinite_differing, found.differing) == ((1, 0), (1, 0), 2, 2)
    assert not found.within(1e9)
    assert found.max_abs == 0.0


def test_nan_at_the_same_place_is_none() -> None:
    values = np.array([1.0, math.nan, -math.inf, 2.0], "f4")
    found = measure_arrays(values, values.copy())
    assert found.within(0.0)
    assert (found.nan, found.inf) == ((1, 1), (1, 1))
    swapped = measure_arrays(values, -values)
    assert swapped.nonfinite_differing == 1


def test_very_large_and_very_small_numbers() -> None:
    for scale in (1e-30, 1e30):
        one = (np.random.default_rng(0).normal(size=1000) * scale).astype("f4")
        found = measure_arrays(one, one * np.float32(1.5))
        assert found.relative_l2 == pytest.approx(1 / 3, rel=1e-3)
        assert found.cosine == pytest.approx(1.0, rel=1e-3)
        assert not found.within(1e-3)


def test_whole_numbers_are_compared_exactly() -> None:
    one = np.array([2**60, 5], "i8")
    found = measure_arrays(one, one + np.array([1, 0]))
    assert found.differing == 1
    assert not found.equal_bits


def test_negative_zero_is_zero() -> None:
    found = measure_arrays(np.array([0.0, 1.0], "f4"), np.array([-0.0, 1.0], "f4"))
    assert (found.differing, found.sign_flips, found.equal_bits, found.within(0.0)) == (0, 0, False, True)


def test_tolerance_is_that_of_the_coarser_type() -> None:
    half, single = 2.0**-10, 2.0**-23
    assert tolerance_of(4, half, single) == 4 * half
    assert tolerance_of(4, 0.0, single) == 0.0
    values = np.random.default_rng(0).normal(size=5000)
    found = measure_arrays(values.astype("f2"), values.astype("f4"))
    assert found.within(tolerance_of(1, half, single))
    assert not found.within(tolerance_of(16, single, single))


def test_one_value_that_is_off_is_seen_in_a_large_tensor() -> None:
    one = np.random.default_rng(0).normal(size=1_000_000).astype("f4")
    other = one.copy()
    other[777_777] += 0.01
    found = measure_arrays(one, other)
    assert found.relative_l2 < 1e-4
    assert not found.within(tolerance_of(16, 2.0**-23))


def test_complex_numbers() -> None:
    random = np.random.default_rng(0)
    one = random.normal(size=10) + 1j * random.normal(size=10)
    assert measure_arrays(one, one.astype("c8")).within(1e-6)
    assert measure_arrays(one, one.conj()).sign_flips == 10
