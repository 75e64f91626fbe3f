"""The tensors of batches and of root calls feature by feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.adapters.base import Watch, guarded
from trueline.recorder import Recorder, to_json
from trueline.recorder.features import features

# How many batches of a loader are looked at: its first ones, and per sampled step.
_FIRST_BATCHES = 3
_BATCHES_PER_STEP = 2
# Root calls that are looked at in evaluation: the first ones, then one per evaluation.
_FIRST_CALLS = 3
_MOST_EVALUATIONS = 32
_MOST_FIELDS = 4


class FieldLook(Watch):
    """Decides which batches and calls are looked at, and records what is seen."""

    def __init__(self, recorder: Recorder, read: Callable[[Any], tuple[NDArray[Any], str] | None]) -> None:
        """`read` gives the values of a tensor and the name of its dtype; None for one without numbers that can be read now."""
        super().__init__(recorder)
        self._read = read
        # How many batches of a loader were looked at, the step of the last one, and how many in that step.
        self._batches: dict[int, list[int]] = {}
        # How many calls of a root were, and the step of the last one, in training and in evaluation.
        self._calls: dict[tuple[int, bool], list[int]] = {}

    @guarded
    def at_batch(self, seq: int, loader: int, fields: list[tuple[str, Any]]) -> None:
        """A loader gave a batch."""
        step = self.recorder.step
        seen = self._batches.setdefault(loader, [0, -1, 0])
        if seen[1] != step:
            seen[1:] = [step, 0]
        if seen[0] < _FIRST_BATCHES or (self.recorder.sampled and seen[2] < _BATCHES_PER_STEP):
            seen[0] += 1
            seen[2] += 1
            self._look_at(seq, "batch", fields)

    @guarded
    def at_call(self, seq: int, root: int, inputs: list[Any], *, evaluating: bool) -> None:
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

    def _look_at(self, seq: int, owner: str, fields: list[tuple[str, Any]]) -> None:
        for name, tensor in fields[:_MOST_FIELDS]:
            readable = self._read(tensor)
            if readable is None:
                continue
            values, dtype = readable
            found = features(values)
            self.recorder.row(
                "field_stat",
                (
                    seq, self.recorder.step, owner, name, to_json(list(tensor.shape)), dtype,
                    found.axis, found.count, found.low.tobytes(), found.high.tobytes(), found.mean.tobytes(), found.std.tobytes(),
                    found.nan, found.inf, to_json(found.spikes) if found.spikes else None,
                    to_json(found.padding) if found.padding else None,
                ),
            )  # fmt: skip


def nonfinite_counts(name: str, array: NDArray[Any], finite: NDArray[Any]) -> dict[str, Any]:
    """How many values of a field are NaN or infinite, and in how many samples."""
    nan = int(np.isnan(array).sum())
    rows = finite.reshape(array.shape[0] if array.ndim else 1, -1)
    samples = int((~rows.all(axis=1)).sum())
    return {"field": name, "nan": nan, "inf": int(array.size - finite.sum()) - nan, "samples": samples}
