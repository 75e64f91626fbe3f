"""How much a gradient would gain from a larger batch: the gradient noise scale.

A batch's gradient is the true one plus noise that shrinks with the batch size B: E|g|² = |G|² + tr(S)/B, and for two batches
in a row, whose noise is independent, E[g·g'] = |G|². The noise scale tr(S)/|G|² = B (|g|² - g·g') / (g·g') is the batch size at
which noise and signal are equal; a batch many times larger hardly improves the direction.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

import msgspec
import numpy as np

from trueline.store import Run
from trueline.views.curve import Curve
from trueline.views.update_sizes import weight_matrices

# The standard error of a cosine from sketches of 64 numbers, at a cosine of zero; it shrinks with 1 - cosine².
_SKETCH_ERROR = 1 / 8


class NoiseScale(msgspec.Struct, frozen=True):
    """The estimate over `pairs` of consecutive steps, and a 95 % upper bound; infinite where the products are not
    distinguishable from zero."""

    value: float
    bound: float
    pairs: int


def noise_scale(run: Run, curve: Curve, batch_size: float) -> NoiseScale | None:
    """From the sketched gradients of consecutive steps of the curve; None without any."""
    wanted = {parameter.id for parameter in weight_matrices(run, curve.optimizer)}
    sketches: dict[int, dict[int, tuple[float, ...]]] = defaultdict(dict)
    for stat in run.stats("gradient"):
        if stat.subject in wanted and stat.sketch is not None and stat.l2:
            sketches[stat.step][stat.subject] = stat.sketch
    mine = [step.id for step in curve.steps if step.id in sketches]
    ratios, errors = [], []
    for one, other in pairwise(mine):
        if other != one + 1:
            continue
        product, length = 0.0, 0.0
        for parameter, sketch in sketches[one].items():
            after = sketches[other].get(parameter)
            if after is not None:
                # Both from the sketches: equal gradients have all in common, whatever the error of the sketch.
                product += float(np.dot(sketch, after))
                length += 0.5 * float(np.dot(sketch, sketch) + np.dot(after, after))
        if length > 0:
            ratios.append(product / length)
            errors.append(_SKETCH_ERROR * max(1 - ratios[-1] ** 2, 0.0))
    if not ratios:
        return None
    # The cosine-like share of the squared length that both gradients have in common.
    common = float(np.median(ratios))
    spread = float(np.std(ratios) / math.sqrt(len(ratios))) if len(ratios) > 1 else 0.0
    lowest = common - 1.96 * math.hypot(spread, float(np.median(errors)) / math.sqrt(len(ratios)))
    return NoiseScale(_scale(common, batch_size), _scale(lowest, batch_size), len(ratios))


def _scale(common: float, batch_size: float) -> float:
    return math.inf if common <= 0 else max(batch_size * (1 - common) / common, 0.0)
