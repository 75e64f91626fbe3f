"""The binomial test: how likely so many hits are by chance."""

from __future__ import annotations

from math import lgamma, log

import numpy as np


def log10_binomial_tail(least: int, count: int, chance: float) -> float:
    """log10 of P(X >= least) for X of `count` trials; 0 where `least` is no more than what is expected."""
    if least <= count * chance or count <= 0:
        return 0.0
    chance = min(max(chance, 1e-12), 1 - 1e-12)
    logs: list[float] = []
    for hits in range(least, count + 1):
        term = (
            lgamma(count + 1)
            - lgamma(hits + 1)
            - lgamma(count - hits + 1)
            + hits * log(chance)
            + (count - hits) * log(1 - chance)
        )
        if logs and term < logs[0] - 40:
            break
        logs.append(term)
    return float((logs[0] + log(np.exp(np.array(logs) - logs[0]).sum())) / log(10))
