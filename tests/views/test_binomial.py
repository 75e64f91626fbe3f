"""The binomial tail against the sum of its terms."""

from __future__ import annotations

from math import comb, log10

import pytest

from trueline.views.binomial import log10_binomial_tail


@pytest.mark.parametrize(("hits", "trials", "chance"), [(3, 3, 0.1), (1, 1, 0.5), (3, 100, 0.002), (12, 60, 0.05), (40, 50, 0.3)])
def test_it_is_the_sum_of_its_terms(hits: int, trials: int, chance: float) -> None:
    exact = sum(comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits, trials + 1))
    assert log10_binomial_tail(hits, trials, chance) == pytest.approx(log10(exact), abs=1e-6)


@pytest.mark.parametrize("trials", [10, 50, 1000])
def test_what_is_expected_is_no_evidence(trials: int) -> None:
    assert log10_binomial_tail(trials // 10, trials, 0.1) == 0.0
