"""The tests of random order that dp.03 stands on: silent on shuffled data, certain on ordered data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.views.order_statistics import (
    displacement,
    label_order,
    log10_chance_of_same_order,
    neighbours_are_alike,
)


def _labels(samples: int, classes: int) -> np.ndarray:
    return np.sort(np.arange(samples) % classes).astype(np.float64)


@settings(max_examples=30, deadline=None)
@given(st.integers(96, 600), st.integers(2, 12), st.integers(1, 64), st.integers(0, 2**32 - 1))
def test_shuffled_labels_look_random(samples: int, classes: int, batch: int, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(_labels(samples, classes))
    sizes = [batch] * (samples // batch) + ([samples % batch] if samples % batch else [])
    test = label_order(shuffled, sizes)
    assert test is None or test.p > 1e-6 or test.ratio < 2
    assert test is None or not test.is_sorted


@settings(max_examples=30, deadline=None)
@given(st.integers(96, 600), st.integers(2, 6), st.integers(1, 24))
def test_sorted_labels_do_not(samples: int, classes: int, batch: int) -> None:
    test = label_order(_labels(samples, classes), [batch] * (samples // batch) + [samples % batch])
    assert test is not None
    assert test.p < 1e-6
    assert test.ratio >= 2
    assert test.is_sorted


def test_one_class_or_two_windows_tell_nothing() -> None:
    assert label_order(np.zeros(100), [20] * 5) is None
    assert label_order(_labels(40, 2), [20, 20]) is None


@pytest.mark.parametrize(("sequence", "orders"), [((1, 2, 3), 6), ((1, 1, 2), 3), ((1, 1, 1), 1), ((1, 1, 2, 2), 6)])
def test_chance_of_the_same_order_counts_orders(sequence: tuple[int, ...], orders: int) -> None:
    assert log10_chance_of_same_order(sequence) == pytest.approx(-math.log10(orders))


@settings(max_examples=20, deadline=None)
@given(st.integers(50, 400), st.integers(0, 2**32 - 1))
def test_a_full_shuffle_moves_samples_as_expected(count: int, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(count).tolist()
    move = displacement(range(count), shuffled)
    assert move is not None
    assert move.p > 1e-6
    assert 0.5 < move.ratio < 1.5


def test_a_small_buffer_does_not() -> None:
    random = np.random.default_rng(0)
    jittered = np.argsort(np.arange(500) + random.uniform(0, 20, size=500)).tolist()
    move = displacement(range(500), jittered)
    assert move is not None
    assert move.p < 1e-6
    assert move.ratio < 0.25


def test_epochs_of_other_samples_cannot_be_compared() -> None:
    assert displacement(range(100), range(1, 101)) is None


def test_neighbours_in_a_series_are_alike() -> None:
    random = np.random.default_rng(0)
    series = np.sin(np.arange(300) / 10) + 0.1 * random.normal(size=300)
    assert neighbours_are_alike(series) < 0.01
    assert neighbours_are_alike(random.permutation(series)) > 0.01
