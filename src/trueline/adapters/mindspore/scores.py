"""Scores and labels of MindSpore tensors, to be judged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mindspore import Tensor
from numpy.typing import NDArray

from trueline.adapters.mindspore.tensors import array_of
from trueline.adapters.shared.scores import ScoreWatch as SharedScoreWatch


class ScoreWatch(SharedScoreWatch):
    """Reads tensors when they are judged, mostly long after they were computed."""

    def are_scores(self, scores: Any) -> bool:
        return isinstance(scores, Tensor) and scores.is_floating_point() and len(scores.shape) > 0

    def are_targets(self, target: Any, size: int, *, whole: bool) -> bool:
        fits = isinstance(target, Tensor) and math.prod(target.shape) == size
        return fits and not (whole and target.is_floating_point())

    def labels_tensor(self, labels: NDArray[Any]) -> NDArray[Any]:
        return labels

    def detached(self, tensor: Any) -> Any:
        return tensor

    def version_of(self, tensor: Any) -> int:
        """Not asked for: it would wait for all that was started, in every step. Scores are hardly ever changed in place here."""
        return 0

    def scores_array(self, scores: Tensor) -> NDArray[Any]:
        return array_of(scores).astype(np.float32, copy=False)

    def labels_array(self, labels: Tensor | NDArray[Any]) -> NDArray[Any]:
        return array_of(labels).reshape(-1)
