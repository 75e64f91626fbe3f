"""Numbers that stand for none are found by where they stand; what data of all kinds hold by themselves is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.datasets.columns import numbers_of
from trueline.datasets.fields import Field
from trueline.datasets.sentinels import Sentinel, is_written_like_one

Values = npt.NDArray[Any]
Maker = Callable[[np.random.Generator, int], Values]

KINDS: dict[str, Maker] = {
    "normal": lambda random, size: random.normal(random.normal() * 100, 10 ** random.uniform(-3, 3), size),
    "rounded normal": lambda random, size: random.normal(50, 10, size).round(1),
    "uniform": lambda random, size: random.uniform(0, 1, size),
    "exponential": lambda random, size: random.exponential(30, size),
    "rounded exponential": lambda random, size: random.exponential(30, size).round(2),
    "lognormal": lambda random, size: random.lognormal(3, 2, size),
    "cauchy": lambda random, size: random.standard_cauchy(size),
    "integers": lambda random, size: random.integers(0, random.integers(2, 300), size),
    "one-hot": lambda random, size: (random.random(size) < 0.1).astype(float),
    "zero-inflated counts": lambda random, size: random.poisson(4, size) * (random.random(size) < 0.1),
    "zero-inflated amounts": lambda random, size: random.normal(1000, 5, size) * (random.random(size) < 0.2),
    "geometric": lambda random, size: random.geometric(0.05, size),
    "zipf": lambda random, size: random.zipf(2, size).clip(0, 10**9),
    "ratings": lambda random, size: random.integers(1, 6, size),
    "years": lambda random, size: random.integers(1950, 2025, size),
    "coins": lambda random, size: random.choice([1, 2, 5, 10, 20, 50, 100, 200, 500], size),
    "powers of two": lambda random, size: 2 ** random.integers(0, 12, size),
    "powers of ten": lambda random, size: 10.0 ** random.integers(-5, 9, size),
    "clipped": lambda random, size: random.exponential(30, size).clip(0, 90),
    "pixels": lambda random, size: random.integers(0, 256, size),
    "two clusters": lambda random, size: np.where(
        random.random(size) < 0.3, random.normal(1000, 1, size), random.normal(size=size)
    ),
    "joined": lambda random, size: random.lognormal(10, 1.5, 40)[random.zipf(1.5, size) % 40],
}


def sentinels_of(values: Values) -> list[Sentinel]:
    field = Field("x")
    for start in range(0, len(values), 700):
        chunk = values[start : start + 700]
        field.add(numbers_of(chunk), start, np.arange(len(chunk)))
    return field.finish().sentinels


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from([3, 20, 150, 2000]))
def test_no_sentinel_in_what_data_hold_by_themselves(kind: str, seed: int, size: int) -> None:
    values = KINDS[kind](np.random.default_rng(seed), size)
    assert sentinels_of(values) == []


@pytest.mark.parametrize(
    "kind", ["normal", "rounded normal", "uniform", "exponential", "integers", "ratings", "years", "geometric"]
)
@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    sentinel=st.sampled_from([-9999.0, 99999.0, -99999.0, 2147483647.0, -1e30, 999999.0]),
    share=st.sampled_from([0.01, 0.1, 0.5]),
)
def test_planted_sentinels_are_found(kind: str, seed: int, sentinel: float, share: float) -> None:
    random = np.random.default_rng(seed)
    values = KINDS[kind](random, 2000).astype(float)
    planted = random.random(2000) < share
    planted[:5] = True
    values[planted] = sentinel
    others = values[~planted]
    distance = min(abs(others.min() - sentinel), abs(others.max() - sentinel))
    if len(np.unique(others)) < 3 or distance <= 4 * np.ptp(others):
        return
    assert [(each.value, each.count) for each in sentinels_of(values)] == [(sentinel, planted.sum())]


def test_several_at_both_ends() -> None:
    values = np.random.default_rng(0).uniform(0, 100, 1000).round(1)
    values[:10], values[10:30], values[30:35] = -999, 999, 9999
    assert {each.value: each.count for each in sentinels_of(values)} == {-999: 10, 999: 20, 9999: 5}


def test_survey_codes() -> None:
    values = np.random.default_rng(0).integers(1, 6, 500)
    values[:30] = np.repeat([97, 98, 99], 10)
    assert [each.value for each in sentinels_of(values)] == [99, 98, 97] or {e.value for e in sentinels_of(values)} == {
        97,
        98,
        99,
    }


def test_a_value_that_nobody_wrote_down_in_a_list() -> None:
    values = np.random.default_rng(0).uniform(0, 60, 3000)
    values[::50] = -200
    assert [(each.value, each.count) for each in sentinels_of(values)] == [(-200, 60)]


def test_one_outlier_is_none() -> None:
    values = np.random.default_rng(0).uniform(0, 60, 3000)
    values[0] = 99999
    assert sentinels_of(values) == []


@pytest.mark.parametrize(
    "value", [-999, 9999, 99, 98, 997, 777, 999.9, 99.99, -32768, 65535, 2**31 - 1, -1e30, 3.4028234663852886e38]
)
def test_written_like_one(value: float) -> None:
    assert is_written_like_one(float(value))


@pytest.mark.parametrize("value", [0, 1, -1, 7, 8, 9, 42, 100, 1000, 12345, 3.14, 9.9, 1989])
def test_not_written_like_one(value: float) -> None:
    assert not is_written_like_one(float(value))
