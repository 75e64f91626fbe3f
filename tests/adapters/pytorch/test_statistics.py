"""Statistics, digests and sketches of torch tensors, against numpy in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from trueline.adapters.pytorch.tensors import digest, row_spread, sketch, statistics, stored, tensors_in

NAMES = ("min", "max", "mean", "std", "l2", "abs_mean", "zero_share", "nan", "inf")
QUICK = settings(max_examples=60, deadline=None)


def expected(values: NDArray[np.float64]) -> dict[str, float | None]:
    finite = values[np.isfinite(values)]
    counts = {"nan": int(np.isnan(values).sum()), "inf": int(np.isinf(values).sum())}
    if finite.size == 0:
        return {**dict.fromkeys(NAMES[:7]), **counts}
    return {
        "min": finite.min(), "max": finite.max(), "mean": finite.mean(), "std": finite.std(),
        "l2": math.sqrt(np.square(finite).sum()), "abs_mean": np.abs(finite).mean(), "zero_share": (finite == 0).mean(),
        **counts,
    }  # fmt: skip


def check(tensor: torch.Tensor, *, relative: float = 1e-4) -> None:
    """Compare with numpy; errors are measured against the size of the values."""
    given_values = tensor.detach()
    truth = expected(given_values.double().numpy().reshape(-1))
    found = dict(zip(NAMES, statistics(tensor), strict=True))
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
            assert one == pytest.approx(other, rel=relative, abs=1e-37), name
        else:
            assert one == pytest.approx(other, rel=relative, abs=relative * scale + 1e-37), name


def shapes() -> st.SearchStrategy[tuple[int, ...]]:
    return arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40)


def ordinary() -> st.SearchStrategy[float]:
    """Numbers whose squares single precision can hold."""
    return st.floats(2.0**-50, 2.0**50, width=32) | st.floats(-(2.0**50), -(2.0**-50), width=32) | st.just(0.0)


@given(arrays.arrays(np.float32, shapes(), elements=ordinary()))
@QUICK
def test_finite_values(values: NDArray[np.float32]) -> None:
    check(torch.from_numpy(values))


@given(arrays.arrays(np.float32, shapes(), elements=st.sampled_from([0.0, -0.0, 1.0, -2.5, math.nan, math.inf, -math.inf])))
@QUICK
def test_nan_and_infinities(values: NDArray[np.float32]) -> None:
    check(torch.from_numpy(values))


@given(arrays.arrays(np.float64, shapes(), elements=st.floats(-1e100, 1e100)))
@QUICK
def test_double_precision(values: NDArray[np.float64]) -> None:
    check(torch.from_numpy(values))


@given(st.integers(1, 3000), ordinary())
@QUICK
def test_constant_tensors_have_no_spread(count: int, value: float) -> None:
    tensor = torch.full((count,), value)
    check(tensor)
    assert statistics(tensor)[3] == 0.0


@given(st.sampled_from([1e2, 1e4, 1e6]), st.integers(2, 5000), st.integers(0, 1000))
@QUICK
def test_a_large_mean_does_not_swallow_the_spread(mean: float, count: int, seed: int) -> None:
    values = (mean + np.random.default_rng(seed).standard_normal(count)).astype(np.float32)
    found = statistics(torch.from_numpy(values))
    assert found[3] == pytest.approx(values.astype(np.float64).std(), rel=1e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize("count", [0, 1, 7, 5000])
def test_other_types(dtype: torch.dtype, count: int) -> None:
    values = torch.randint(0, 2 if dtype is torch.bool else 100, (count,), generator=torch.Generator().manual_seed(count))
    check(values.to(dtype))


def test_many_half_values_do_not_overflow() -> None:
    check(torch.full((100_000,), 60_000.0, dtype=torch.float16))


def test_sums_over_many_values_stay_exact() -> None:
    """Adding one by one in single precision loses whole percents over the size of one embedding table."""
    values = torch.full((5_000_000,), -1205.0)
    values[0] = 1.0
    check(values, relative=1e-3)


def test_infinities_of_half_precision() -> None:
    check(torch.tensor([1.0, math.inf, math.nan, -2.0], dtype=torch.bfloat16))


@pytest.mark.parametrize("value", [1e30, -3e38, 1e-25, 1e-31])
def test_values_whose_squares_single_precision_cannot_hold(value: float) -> None:
    """Exploding activations and vanishing gradients are what one looks for: their size must be told, not infinity or 0."""
    check(torch.tensor([value, value / 2, 0.0]), relative=1e-3)


def test_complex_values_are_measured_by_their_parts() -> None:
    found = statistics(torch.tensor([3.0 + 4.0j, 0.0]))
    assert (found[0], found[1]) == (0.0, 4.0)
    assert found[4] == pytest.approx(5.0)


def test_views_and_gradients_are_no_obstacle() -> None:
    tensor = torch.arange(24.0, requires_grad=True).reshape(4, 6).t()[::2]
    check(tensor)
    assert len(sketch(tensor)) == 64 * 4
    assert digest(tensor) == digest(tensor.detach().clone())


@given(arrays.arrays(np.float32, (3, 4), elements=st.floats(-10, 10, width=32)))
@QUICK
def test_row_spread_is_the_largest_difference_within_a_column(values: NDArray[np.float32]) -> None:
    assert row_spread(torch.from_numpy(values)) == pytest.approx(float((values.max(0) - values.min(0)).max()))


@given(
    arrays.arrays(np.float32, (3, 2), elements=st.sampled_from([0.0, 1.0, 2.0])),
    arrays.arrays(np.float32, (3, 2), elements=st.sampled_from([0.0, 1.0, 2.0])),
)
@QUICK
def test_digests_are_equal_for_equal_content_only(one: NDArray[np.float32], other: NDArray[np.float32]) -> None:
    same = np.array_equal(one, other)
    assert (digest(torch.from_numpy(one)) == digest(torch.from_numpy(other))) is same


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.int64, torch.complex64, torch.float8_e4m3fn])
@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
def test_digest_and_raw_bytes_of_every_type(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.ones(shape).to(dtype)
    assert len(digest(tensor)) == 16
    kept = stored(tensor)
    assert kept.data.nbytes == tensor.numel() * tensor.element_size()
    assert kept.shape == shape


def test_a_stored_tensor_does_not_change_with_its_source() -> None:
    tensor = torch.zeros(3)
    kept = stored(tensor)
    tensor.fill_(1.0)
    assert not kept.data.any()


def test_tensors_are_found_in_nests() -> None:
    one, two, three = torch.zeros(1), torch.zeros(2), torch.zeros(3)
    assert [tensor.numel() for tensor in tensors_in({"a": [one, (two, "text")], "b": {"c": three}})] == [1, 2, 3]
    assert len(tensors_in([one] * 40)) == 16
