"""Scores and labels of torch tensors, to be judged."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from trueline.adapters.pytorch.tensors import is_plain, memory_of, values_of, version_of
from trueline.adapters.shared.scores import ScoreWatch as SharedScoreWatch


class ScoreWatch(SharedScoreWatch):
    """Reads torch tensors, on the CPU only."""

    def are_scores(self, scores: Any) -> bool:
        return isinstance(scores, Tensor) and scores.is_cpu and scores.is_floating_point() and scores.dim() > 0

    def are_targets(self, target: Any, size: int, *, whole: bool) -> bool:
        fits = isinstance(target, Tensor) and target.numel() == size and target.is_cpu
        return fits and not (whole and target.is_floating_point())

    def labels_tensor(self, labels: NDArray[Any]) -> Tensor:
        return torch.from_numpy(labels)

    def detached(self, tensor: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            return tensor.detach()

    def version_of(self, tensor: Tensor) -> int:
        return version_of(tensor)

    def scores_array(self, scores: Tensor) -> NDArray[Any] | None:
        if not is_plain(scores):
            return None
        with torch._C.DisableTorchFunction():
            # As arrays they are joined by numpy: under autocast torch would change their formats, or refuse to.
            return memory_of(values_of(scores).float())

    def labels_array(self, labels: Tensor) -> NDArray[Any] | None:
        """Numpy does not know every format that targets of a binary loss may have."""
        if not is_plain(labels):
            return None
        with torch._C.DisableTorchFunction():
            values = values_of(labels)
            return memory_of((values.float() if values.is_floating_point() else values).reshape(-1))
