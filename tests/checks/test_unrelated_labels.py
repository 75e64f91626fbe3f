"""What tells labels without any relation to their inputs from a test of the program with noise for inputs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from trueline.checks.ds_02_wrong_labels.unrelated_labels import _STRUCTURE, _by_chance, _structure
from trueline.model import Sample


def samples_of(rows: np.ndarray, dtype: str = "float32") -> list[Sample]:
    return [Sample(0, i, 0, i, dtype, row.shape, row.astype(dtype).tobytes()) for i, row in enumerate(rows)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [20, 120])
@pytest.mark.parametrize("shape", [(8,), (64,), (3, 16, 16)])
def test_noise_has_no_structure(seed: int, count: int, shape: tuple[int, ...]) -> None:
    noise = np.random.default_rng(seed).normal(size=(count, *shape))
    assert _structure(samples_of(noise)) < _STRUCTURE


def test_real_data_has_structure() -> None:
    images = load_digits().images
    assert _structure(samples_of(images[:60])) > _STRUCTURE
    assert _structure(samples_of(images[:60], "int64")) > _STRUCTURE
    table = load_breast_cancer().data
    assert _structure(samples_of((table - table.mean(0)) / table.std(0))) > _STRUCTURE


def test_too_few_samples_or_numbers_tell_nothing() -> None:
    images = load_digits().images
    assert _structure(samples_of(images[:10])) == 0.0
    assert _structure(samples_of(images[:60, 0, :4])) == 0.0
    assert _structure([]) == 0.0


def test_chance_of_predictions_that_know_nothing() -> None:
    random = np.random.default_rng(0)
    labels, predicted = random.integers(0, 4, 40_000), random.choice(3, 40_000, p=[0.8, 0.1, 0.1])
    assert _by_chance(labels, predicted) == pytest.approx((labels == predicted).mean(), abs=0.01)
