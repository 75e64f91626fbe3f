"""How far tensors are apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueline.compare.runs.measure import distance, in_shape_of


def test_equal_tensors() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert distance(values, values).relative == 0.0


def test_nan_on_one_side_is_a_difference() -> None:
    values = np.ones(4, np.float32)
    assert math.isinf(distance(np.array([1, np.nan, 1, 1], np.float32), values).relative)
    assert math.isinf(distance(values, np.array([1, np.inf, 1, 1], np.float32)).relative)


def test_the_same_nan_on_both_sides_is_none() -> None:
    values = np.array([1, np.nan, -np.inf, 2], np.float32)
    assert distance(values, values.copy()).relative == 0.0
    assert math.isinf(distance(np.array([1, np.nan, np.inf, 2], np.float32), values).relative)


def test_sign_flips_of_tiny_values_count() -> None:
    values = np.full(8, 1e-30)
    assert distance(-values, values).relative == pytest.approx(2.0)


def test_other_sizes_cannot_be_compared() -> None:
    found = distance(np.ones(3), np.ones(4))
    assert math.isinf(found.relative)
    assert "shapes" in found.why


def test_axes_in_another_order_are_put_right() -> None:
    values = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    assert in_shape_of(values.transpose(0, 2, 3, 1), values) is not None
    assert distance(values.transpose(0, 2, 3, 1), values).relative == 0.0
    series = np.random.default_rng(0).normal(size=(7, 3, 5))
    assert distance(series.transpose(1, 0, 2), series).relative == 0.0


@given(st.floats(0.01, 100.0), st.integers(0, 1000))
def test_factor_and_scale(factor: float, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=50)
    found = distance(factor * values, values)
    assert found.factor == pytest.approx(factor)
    assert found.relative == pytest.approx(abs(factor - 1), abs=1e-9)
    scaled = distance(1e-6 * factor * values, 1e-6 * values)
    assert scaled.relative == pytest.approx(found.relative, abs=1e-9)
