"""What runs as they are tell of their data."""

from __future__ import annotations

import numpy as np

from trueline.compare.runs.input_values import _other_features, _scaled_a_little, same_but_for_scales
from trueline.model import FieldStat

TABLE = np.random.default_rng(0).normal(size=(400, 5)) * [1, 20, 3, 8, 1] + [5, 120, 40, 2, 0]


def looks(table: np.ndarray) -> list[FieldStat]:
    return [
        FieldStat(
            number, number, "call", "0", part.shape, "float32", 1, len(part), tuple(part.min(0)), tuple(part.max(0)),
            tuple(part.mean(0)), tuple(part.std(0)), 0, 0, [], None,
        )
        for number, part in enumerate(np.split(table, 8))
    ]  # fmt: skip


def by(axis: int) -> np.ndarray:
    return np.asarray((TABLE - TABLE.mean(axis, keepdims=True)) / TABLE.std(axis, keepdims=True))


def test_the_same_features_in_another_order_of_samples() -> None:
    shuffled = by(0)[np.random.default_rng(1).permutation(400)]
    assert _other_features(looks(shuffled), looks(by(0))) is None


def test_each_sample_standardised_by_itself() -> None:
    assert abs(by(0).std() - by(1).std()) < 1e-6
    words = _other_features(looks(by(1)), looks(by(0)))
    assert words is not None
    assert "of 5 features differ" in words


def test_the_same_samples_scaled_a_little_otherwise() -> None:
    by_number_less_one = by(0) * np.sqrt(399 / 400)
    assert _other_features(looks(by_number_less_one), looks(by(0))) is None
    words = _scaled_a_little(looks(by_number_less_one), looks(by(0)))
    assert words is not None
    assert "0.998749 times" in words


def test_the_same_samples_are_the_same() -> None:
    assert _scaled_a_little(looks(by(0).astype(np.float32)), looks(by(0))) is None


def test_random_changes_of_the_same_samples_are_no_scale() -> None:
    changed = by(0) + 0.05 * np.random.default_rng(2).normal(size=TABLE.shape)
    assert _scaled_a_little(looks(changed), looks(by(0))) is None


def test_the_same_samples_shifted_a_little() -> None:
    words = _scaled_a_little(looks(by(0) + 0.01), looks(by(0)))
    assert words is not None
    assert "0.01 std beside" in words


def test_rounding_of_large_values_is_no_shift() -> None:
    far = TABLE / TABLE.std(0) + 3000
    assert _scaled_a_little(looks(far * (1 + 1e-7)), looks(far)) is None


def test_the_same_samples_standardised_otherwise_are_in_the_same_order() -> None:
    of_the_first_rows = (TABLE - TABLE[:300].mean(0)) / TABLE[:300].std(0)
    assert same_but_for_scales(looks(of_the_first_rows), looks(by(0)))
    assert same_but_for_scales(looks(TABLE), looks(by(0)))
    assert not same_but_for_scales(looks(of_the_first_rows[::-1]), looks(by(0)))
    assert not same_but_for_scales(looks(np.roll(of_the_first_rows, 1, axis=0)), looks(by(0)))
