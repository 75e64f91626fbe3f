"""Sketches: linear, the same from every adapter, and true to lengths and angles within their stated error."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trueline.adapters.pytorch.tensors import sketch as torch_sketch
from trueline.recorder.sketch import BLOCK, BUCKETS, block_sign, block_signs, cosine, distance, sketch

Values = NDArray[np.float32]


def normal(count: int, seed: int, scale: float = 1.0) -> Values:
    return (scale * np.random.default_rng(seed).standard_normal(count)).astype(np.float32)


def from_torch(tensor: torch.Tensor) -> Values:
    return np.frombuffer(torch_sketch(tensor), "<f4")


sizes = st.integers(0, 5000)
seeds = st.integers(0, 10_000)
factors = st.floats(-100, 100, width=32)


@given(sizes, seeds, factors, factors)
@settings(max_examples=60)
def test_linear(count: int, seed: int, one: float, other: float) -> None:
    a, b = normal(count, seed), normal(count, seed + 1)
    together = sketch((one * a.astype(np.float64) + other * b).astype(np.float32))
    apart = one * sketch(a).astype(np.float64) + other * sketch(b)
    error = 1e-5 * (abs(one) + abs(other) + 1) * (1 + math.sqrt(count))
    np.testing.assert_allclose(together, apart, atol=error)


@given(st.integers(1, 5000), st.data())
@settings(max_examples=60)
def test_each_element_goes_to_one_bucket_with_one_sign(count: int, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, count - 1))
    values = np.zeros(count, np.float32)
    values[position] = 3.0
    found = sketch(values)
    assert abs(found[position % BUCKETS]) == 3.0
    assert np.count_nonzero(found) == 1


@given(sizes, seeds, st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8]))
@settings(max_examples=60)
def test_torch_computes_the_same(count: int, seed: int, dtype: torch.dtype) -> None:
    tensor = torch.from_numpy(np.abs(normal(count, seed, 10.0))).to(dtype)
    np.testing.assert_allclose(from_torch(tensor), sketch(tensor.float().numpy()), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("count", [BUCKETS - 1, BUCKETS, BUCKETS + 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77])
def test_torch_computes_the_same_around_the_borders(count: int) -> None:
    values = normal(count, 3)
    np.testing.assert_allclose(from_torch(torch.from_numpy(values)), sketch(values), rtol=1e-5, atol=1e-3)


def test_row_major_order_whatever_the_strides() -> None:
    tensor = torch.from_numpy(normal(600, 1)).reshape(20, 30)
    turned = tensor.t()
    np.testing.assert_allclose(from_torch(turned), sketch(turned.contiguous().numpy()), rtol=1e-5, atol=1e-5)
    assert distance(from_torch(turned), from_torch(tensor)) > 1.0


def test_blocks_do_not_cancel() -> None:
    """Were all blocks given the same signs, two equal blocks of opposite values would vanish; so would the reverse."""
    signs = [block_sign(block) for block in range(200)]
    assert 60 < signs.count(1.0) < 140
    assert set(signs) == {1.0, -1.0}
    assert abs(float(block_signs().mean())) < 0.005


def test_squared_length_is_unbiased() -> None:
    """Over many tensors the mean of the estimates is the truth, and their spread is the stated sqrt(2/64)."""
    ratios = []
    for seed in range(400):
        values = normal(3000, seed)
        ratios.append(float(np.square(sketch(values), dtype=np.float64).sum()) / float(np.square(values, dtype=np.float64).sum()))
    stated = math.sqrt(2 / BUCKETS)
    assert np.mean(ratios) == pytest.approx(1.0, abs=4 * stated / math.sqrt(len(ratios)))
    assert np.std(ratios) == pytest.approx(stated, rel=0.2)


@pytest.mark.parametrize("values", [np.ones(100_000, np.float32), np.arange(100_000, dtype=np.float32)], ids=["constant", "ramp"])
def test_length_of_regular_tensors(values: Values) -> None:
    """Biases and masks are not random: the signs have to be."""
    estimate = float(np.linalg.norm(sketch(values).astype(np.float64)))
    assert estimate == pytest.approx(float(np.linalg.norm(values.astype(np.float64))), rel=0.4)


@given(st.integers(1, 5000), seeds)
@settings(max_examples=40)
def test_distance_of_equal_tensors_is_zero(count: int, seed: int) -> None:
    values = normal(count, seed)
    assert distance(sketch(values), sketch(values.copy())) == 0.0
    assert cosine(sketch(values), sketch(values)) == pytest.approx(1.0)
    assert cosine(sketch(values), sketch(-values)) == pytest.approx(-1.0)


@pytest.mark.parametrize("angle", [0.0, 30.0, 90.0, 150.0, 180.0])
def test_distance_and_cosine_between_two_tensors(angle: float) -> None:
    found_cosines, found_distances = [], []
    for seed in range(60):
        a, b = normal(4000, seed), normal(4000, seed + 1000)
        turned = (math.cos(math.radians(angle)) * a + math.sin(math.radians(angle)) * b).astype(np.float32)
        found_cosines.append(cosine(sketch(a), sketch(turned)))
        found_distances.append(distance(sketch(a), sketch(turned)) ** 2 / max(float(np.square(a - turned).sum()), 1e-30))
    assert np.mean(found_cosines) == pytest.approx(math.cos(math.radians(angle)), abs=0.07)
    if angle:
        assert np.mean(found_distances) == pytest.approx(1.0, abs=0.1)


def test_a_small_change_of_a_large_tensor_is_seen() -> None:
    values = normal(200_000, 5, 100.0)
    changed = values.copy()
    changed[123_456] += 1.0
    assert distance(sketch(values), sketch(changed)) == pytest.approx(1.0, rel=0.05)


def test_cosine_with_nothing_is_not_a_number() -> None:
    assert math.isnan(cosine(sketch(np.zeros(10, np.float32)), sketch(np.ones(10, np.float32))))
    assert not sketch(np.zeros(0, np.float32)).any()
