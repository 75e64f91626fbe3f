"""Aligned runs draw the same numbers, whichever generator they ask."""

# ruff: noqa: NPY002, S311 - the generators that scripts ask, old ones too

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueline.recorder import Recorder
from trueline.recorder.alignment import Alignment
from trueline.recorder.generators import GeneratorWatch
from trueline.recorder.noise import Noise
from trueline.recorder.patches import Patches


def begun() -> Noise:
    noise = Noise()
    noise.begin()
    return noise


def test_nothing_is_replaced_before_training_begins() -> None:
    assert Noise().normal(0, (3,)) is None
    assert Noise().permutation(0, 5) is None


def test_two_runs_draw_the_same_in_every_step() -> None:
    first, second = begun(), begun()
    for step in (0, 0, 1):
        assert np.array_equal(first.normal(step, (4, 2)), second.normal(step, (8,)).reshape(4, 2))  # type: ignore[union-attr, arg-type]
        assert np.array_equal(first.permutation(step, 50), second.permutation(step, 50))  # type: ignore[arg-type]
    assert sorted(first.permutation(2, 50)) == list(range(50))  # type: ignore[arg-type]


def test_numbers_of_another_sort_between_do_not_matter() -> None:
    first, second = begun(), begun()
    second.uniform(0, (3,))
    second.permutation(0, 9)
    assert np.array_equal(first.permutation(0, 10), second.permutation(0, 10))  # type: ignore[arg-type]


def test_draws_differ_from_one_to_the_next_and_repeat_from_the_same_state() -> None:
    noise = begun()
    first, other, again = noise.normal(0, (9,), 1), noise.normal(0, (9,), 2), noise.normal(0, (9,), 1)
    assert not np.array_equal(first, other)  # type: ignore[arg-type]
    assert np.array_equal(first, again)  # type: ignore[arg-type]


@pytest.fixture
def noise(tmp_path: Path) -> Iterator[Noise]:
    """With the generators of numpy and Python watched in a recorder that stays at step 0."""

    def no_writer() -> Any:
        raise AssertionError("nothing is written before a framework is there")

    alignment = Alignment(tmp_path)
    alignment.noise.begin()
    patches = Patches()
    GeneratorWatch(Recorder(no_writer, str(tmp_path), 0.05, alignment=alignment)).install(patches)
    try:
        yield begun()
    finally:
        patches.undo()


def shuffled(count: int, shuffle: Any) -> list[int]:
    numbers = list(range(count))
    shuffle(numbers)
    return numbers


@pytest.mark.parametrize(
    "order",
    [
        lambda: np.random.default_rng(1).permutation(20).tolist(),
        lambda: np.random.RandomState(2).permutation(20).tolist(),
        lambda: np.random.permutation(np.arange(20)).tolist(),
        lambda: shuffled(20, np.random.default_rng(3).shuffle),
        lambda: shuffled(20, np.random.shuffle),
        lambda: shuffled(20, random.shuffle),
        lambda: shuffled(20, random.Random(4).shuffle),
        lambda: random.sample(range(20), 20),
        lambda: np.random.choice(20, 20, replace=False).tolist(),
    ],
)
def test_every_generator_draws_the_same_order(noise: Noise, order: Any) -> None:
    assert order() == noise.permutation(0, 20).tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.default_rng(1).integers(5, 30, size=8),
        lambda: np.random.default_rng(1).integers(5, 29, 8, endpoint=True),
        lambda: np.random.RandomState(1).randint(5, 30, 8),
        lambda: np.random.randint(5, 30, size=8),
        lambda: 5 + np.random.choice(25, size=8),
        lambda: np.random.default_rng(1).choice(np.arange(5, 30), 8),
    ],
)
def test_every_generator_draws_the_same_numbers(noise: Noise, draw: Any) -> None:
    assert draw().tolist() == noise.integers(0, 5, 30, (8,)).tolist()  # type: ignore[union-attr]


def test_noise_keeps_its_place_and_its_spread(noise: Noise) -> None:
    expected = noise.normal(0, (4,))
    assert expected is not None
    assert np.allclose(np.random.default_rng(1).normal(2.0, 3.0, 4), 2.0 + 3.0 * expected)
    single = np.random.default_rng(1).normal()
    assert isinstance(single, float)
    assert isinstance(random.random(), float)
    assert isinstance(random.randint(3, 4), int)
    assert np.random.default_rng(1).random(3, dtype=np.float32).dtype == np.float32


@pytest.mark.usefixtures("noise")
def test_what_has_weights_stays_the_scripts() -> None:
    weights = [0.0, 0.0, 1.0]
    assert np.random.choice(3, 4, p=weights).tolist() == [2, 2, 2, 2]


@pytest.mark.usefixtures("noise")
def test_arrays_that_are_shuffled_from_the_same_state_stay_together() -> None:
    x, y = np.arange(40).reshape(20, 2), np.arange(20)
    for array in (x, y):
        np.random.seed(7)
        np.random.shuffle(array)
    assert (x[:, 0] // 2).tolist() == y.tolist()
    assert y.tolist() != list(range(20))


@pytest.mark.usefixtures("noise")
def test_watched_generators_are_generators() -> None:
    made = np.random.default_rng(1)
    assert isinstance(made, np.random.Generator)
    assert np.random.default_rng(made) is made
    assert isinstance(np.random.mtrand._rand, np.random.RandomState)
    assert isinstance(np.random.RandomState(1), np.random.RandomState)
