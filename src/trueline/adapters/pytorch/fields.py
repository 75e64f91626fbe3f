"""The tensors of batches and of root calls feature by feature, and missing values in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueline.adapters.base import Watch
from trueline.adapters.pytorch.tensors import dtype_name, is_plain
from trueline.record import Recorder, to_json
from trueline.record.features import features

# How many batches of a loader are looked at: its first ones, and per sampled step.
_FIRST_BATCHES = 3
_BATCHES_PER_STEP = 2
# Root calls that are looked at in evaluation: the first ones, then one per evaluation.
_FIRST_CALLS = 3
_MOST_EVALUATIONS = 32
_MOST_FIELDS = 4
_SMALL_ARRAY = 1 << 13


class FieldLook(Watch):
    """Decides which batches and calls are looked at, and records what is seen."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        # How many batches of a loader were looked at, the step of the last one, and how many in that step.
        self._batches: dict[int, list[int]] = {}
        # How many calls of a root were, and the step of the last one, in training and in evaluation.
        self._calls: dict[tuple[int, bool], list[int]] = {}

    def at_batch(self, seq: int, loader: int, fields: list[tuple[str, Tensor]]) -> None:
        """A loader gave a batch."""
        step = self.recorder.step
        seen = self._batches.setdefault(loader, [0, -1, 0])
        if seen[1] != step:
            seen[1:] = [step, 0]
        if seen[0] < _FIRST_BATCHES or (self.recorder.sampled and seen[2] < _BATCHES_PER_STEP):
            seen[0] += 1
            seen[2] += 1
            self._look_at(seq, "batch", fields)

    def at_call(self, seq: int, root: int, inputs: list[Tensor], *, evaluating: bool) -> None:
        """A root module was called with these tensors."""
        step = self.recorder.step
        seen = self._calls.setdefault((root, evaluating), [0, -1])
        first_of_step = seen[1] != step
        if evaluating:
            wanted = seen[0] < _FIRST_CALLS or (first_of_step and seen[0] < _MOST_EVALUATIONS)
        else:
            wanted = first_of_step and self.recorder.sampled
        if wanted:
            seen[0] += 1
            seen[1] = step
            self._look_at(seq, "call", [(str(place), tensor) for place, tensor in enumerate(inputs)])

    def _look_at(self, seq: int, owner: str, fields: list[tuple[str, Tensor]]) -> None:
        for name, tensor in fields[:_MOST_FIELDS]:
            if not is_plain(tensor) or not tensor.is_cpu or tensor.dim() == 0 or tensor.numel() == 0:
                continue
            if tensor.is_complex() or tensor.dtype is torch.bool:
                continue
            with torch._C.DisableTorchFunction():
                values = tensor.detach()
                known_to_numpy = not values.is_floating_point() or is_readable_float(values)
                found = features((values if known_to_numpy else values.float()).numpy())
            self.recorder.row(
                "field_stat",
                (
                    seq, self.recorder.step, owner, name, to_json(list(tensor.shape)), dtype_name(tensor),
                    found.axis, found.count, found.low.tobytes(), found.high.tobytes(), found.mean.tobytes(), found.std.tobytes(),
                    found.nan, found.inf, to_json(found.spikes) if found.spikes else None,
                    to_json(found.padding) if found.padding else None,
                ),
            )  # fmt: skip


def is_readable_float(tensor: Tensor) -> bool:
    """Whether numpy can read it as floating-point numbers."""
    return tensor.is_cpu and is_plain(tensor) and tensor.dtype in {torch.float32, torch.float64, torch.float16}


def nonfinite(name: str, tensor: Tensor, array: NDArray[Any]) -> dict[str, Any] | None:
    """How much of a field is NaN or infinite, if anything; `array` are its values if its dtype says so."""
    if array.dtype.kind != "f":
        array = tensor.detach().numpy()
    flat = array.reshape(-1)
    if array.dtype != np.float16:
        # A dot product with itself tells at once that there is nothing; of much data torch's is quicker.
        values: Any = flat if flat.size <= _SMALL_ARRAY else torch.from_numpy(flat)
        square = float(values.dot(values))
        if square - square == 0.0:
            return None
    finite = np.isfinite(array)
    if finite.all():
        return None
    nan = int(np.isnan(array).sum())
    rows = finite.reshape(array.shape[0] if array.ndim else 1, -1)
    samples = int((~rows.all(axis=1)).sum())
    return {"field": name, "nan": nan, "inf": int(array.size - finite.sum()) - nan, "samples": samples}
