"""Features of a tensor: moments against numpy's own, spikes and padding that were planted, and none that were not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueline.recorder.features import feature_axis, features, padding


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((32,), None), ((32, 1), None), ((32, 64), 1), ((32, 5000), None), ((32, 100, 6), 2), ((32, 6, 100), 1),
        ((32, 3, 28, 28), 1), ((32, 28, 28, 3), 3), ((32, 1, 8, 8), 1), ((32, 512, 7, 7), None), ((8, 3, 4, 28, 28), 1),
    ],
)  # fmt: skip
def test_the_axis_of_features(shape: tuple[int, ...], axis: int | None) -> None:
    assert feature_axis(shape) == axis


def test_moments_are_per_feature() -> None:
    values = np.random.default_rng(0).normal([0, 100, -3], [1, 20, 0.1], size=(200, 3)).astype(np.float32)
    found = features(values)
    assert (found.axis, found.count, found.nan, found.inf) == (1, 200, 0, 0)
    np.testing.assert_allclose(found.mean, values.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.std, values.std(0), rtol=1e-4)
    np.testing.assert_array_equal(found.low, values.min(0))
    np.testing.assert_array_equal(found.high, values.max(0))


def test_missing_values_are_counted_and_left_out() -> None:
    values = np.arange(60, dtype=np.float64).reshape(20, 3)
    values[4, 0] = np.nan
    values[5, 1] = np.inf
    values[:, 2] = np.nan
    found = features(values)
    assert (found.nan, found.inf) == (21, 1)
    assert found.mean[0] == pytest.approx(np.delete(values[:, 0], 4).mean())
    assert found.high[1] == 58
    assert np.isnan(found.mean[2])


@given(st.integers(0, 1000), st.sampled_from([-999.0, 9999.0, -1.0e6]), st.integers(1, 12))
def test_a_value_apart_from_all_others_is_a_spike(seed: int, sentinel: float, count: int) -> None:
    values = np.random.default_rng(seed).normal(10, 5, size=(64, 4))
    values[:count, 2] = sentinel
    (spike,) = features(values).spikes
    assert (spike["feature"], spike["value"], spike["count"]) == (2, sentinel, count)
    assert spike["high"] == values[count:, 2].max()


@given(st.integers(0, 1000), st.sampled_from(["uniform", "one-hot", "counts", "constant"]))
def test_ordinary_features_have_none(seed: int, kind: str) -> None:
    generator = np.random.default_rng(seed)
    values = {
        "uniform": generator.uniform(-1, 1, size=(64, 5)),
        "one-hot": np.eye(5)[generator.integers(0, 5, 64)],
        "counts": generator.integers(0, 6, size=(64, 5)).astype(float),
        "constant": np.ones((64, 5)),
    }[kind]
    assert features(values).spikes == []


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_token_ids(side: str) -> None:
    generator = np.random.default_rng(1)
    tokens = generator.integers(1, 50, size=(16, 20))
    lengths = generator.integers(5, 18, size=16)
    for row, length in zip(tokens, lengths, strict=True):
        row[length:] = 0
        if side == "left":
            row[:] = row[::-1].copy()
    found = padding(tokens)
    assert found is not None
    assert (found["value"], found["side"], found["rows"]) == (0.0, side, 16)
    assert found["lengths"] == [lengths.min(), lengths.max()]
    assert found["share"] == pytest.approx(1 - lengths.sum() / tokens.size)


def test_padding_of_vectors_over_time() -> None:
    generator = np.random.default_rng(2)
    steps = generator.normal(size=(12, 15, 4))
    for row, length in zip(steps, generator.integers(4, 13, size=12), strict=True):
        row[length:] = 0
    found = padding(steps)
    assert found is not None
    assert (found["value"], found["side"]) == (0.0, "right")


@given(st.integers(0, 500))
def test_random_tokens_are_not_padded(seed: int) -> None:
    assert padding(np.random.default_rng(seed).integers(0, 30, size=(32, 16))) is None
