"""Margins of a classifier's scores, and the classes that it predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

OVER_CLASSES = {"cross_entropy", "nll_loss", "multi_margin_loss"}
BINARY = {"binary_cross_entropy_with_logits", "binary_cross_entropy"}
SCORED = OVER_CLASSES | BINARY
_MOST_CLASSES = 20_000
# Probabilities are turned into logits, which are infinite at 0 and 1.
_CLOSEST = 1e-6


def judged(kind: str, scores: NDArray[Any], labels: NDArray[Any], size: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """The margin and the predicted class of each sample; None when these scores and labels do not fit each other."""
    # Infinite scores are the script's, and so would be a warning about them.
    with np.errstate(all="ignore"):
        return _of_classes(scores, labels, size) if kind in OVER_CLASSES else _of_two(kind, scores, labels, size)


def _of_classes(scores: NDArray[Any], labels: NDArray[Any], size: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    if scores.ndim != 2 or scores.shape[0] != size or not 2 <= scores.shape[1] <= _MOST_CLASSES:
        return None
    classes = labels.astype(np.int64)
    if classes.min() < 0 or classes.max() >= scores.shape[1]:
        return None
    rows = np.arange(size)
    own = scores[rows, classes]
    others = scores.copy()
    others[rows, classes] = -np.inf
    best = others.argmax(axis=1)
    margins = own - others[rows, best]
    return margins, np.where(margins >= 0, classes, best)


def _of_two(kind: str, scores: NDArray[Any], labels: NDArray[Any], size: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    if scores.size != size or not np.isin(labels, (0, 1)).all():
        return None
    logits = scores.reshape(-1)
    if kind == "binary_cross_entropy":
        probabilities = np.clip(logits, _CLOSEST, 1 - _CLOSEST)
        logits = np.log(probabilities / (1 - probabilities))
    return logits * (2 * labels - 1), (logits > 0).astype(np.int32)
