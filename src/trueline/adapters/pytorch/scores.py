"""How a classifier judges each sample: its margin and the predicted class, at losses and in evaluation."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.data import BatchWatch, Current
from trueline.adapters.pytorch.tensors import is_plain, version_of
from trueline.adapters.shared.margins import BINARY, OVER_CLASSES, judged
from trueline.record import Recorder

# Of the run's time so far, after a first allowance in seconds. Twice as much is lost: what is done between the operations of
# a short step makes those slower that come after it.
_SHARE = 0.005
_ALLOWANCE = 0.02
# Scores of at most this many values are put aside and judged together, so many batches at a time; every so many is judged at
# once, while its content can still be kept for the review sheet.
_PUT_OFF = 8192
_AT_ONCE = 64
_LOOKED_AT = 32


class _Waiting(NamedTuple):
    """Scores to be judged later. The script may change both tensors in place until then, which their versions tell."""

    seq: int
    step: int
    batch: int
    size: int
    training: bool
    kind: str
    scores: Tensor
    scores_version: int
    labels: Tensor
    labels_version: int

    @property
    def is_unchanged(self) -> bool:
        return version_of(self.scores) == self.scores_version and version_of(self.labels) == self.labels_version


class ScoreWatch(Watch):
    """Told of losses and of outputs in evaluation; keeps what it is worth within a share of the run's time."""

    def __init__(self, recorder: Recorder, batches: BatchWatch) -> None:
        super().__init__(recorder)
        self._batches = batches
        self._started = perf_counter()
        self._spent = 0.0
        # When the next batch can be afforded: asked before everything else, in every step.
        self.due = self._started
        self._last: tuple[int, bool] | None = None
        self._binary_loss: str | None = None
        self._count = -1
        self._waiting: list[_Waiting] = []

    def _account(self, started: float) -> None:
        self._spent += perf_counter() - started
        self.due = self._started + (self._spent - _ALLOWANCE) / _SHARE

    @guarded
    def at_loss(self, kind: str, scores: Any, target: Any, *, training: bool) -> None:
        """A loss compares the scores of the current batch with their targets, and it is time to look at them."""
        started = perf_counter()
        current = self._batches.current
        if current is None or not isinstance(scores, Tensor) or not isinstance(target, Tensor):
            return
        if kind in BINARY:
            self._binary_loss = kind
        if target.numel() == current.size and target.is_cpu and not (kind in OVER_CLASSES and target.is_floating_point()):
            self._keep(current, kind, scores, target, training=training)
        self._account(started)

    @guarded
    def at_output(self, output: Tensor) -> None:
        """A model gave this output outside of training; its batch may have come with targets."""
        started = perf_counter()
        current = self._batches.current
        if current is None or current.classes is None or started < self.due:
            return
        kind = "cross_entropy" if output.dim() == 2 and output.shape[1] > 1 else self._binary_loss
        if kind is not None and (kind in OVER_CLASSES or output.numel() == current.size):
            labels = torch.from_numpy(np.frombuffer(current.classes, "<f8").copy())
            self._keep(current, kind, output, labels, training=False)
        self._account(started)

    def _keep(self, current: Current, kind: str, scores: Tensor, labels: Tensor, *, training: bool) -> None:
        if self._last == (current.seq, training) or not scores.is_cpu or not scores.is_floating_point() or not scores.dim():
            return
        recorder = self.recorder
        self._last = (current.seq, training)
        self._count += 1
        with torch._C.DisableTorchFunction():
            values, classes = scores.detach(), labels.detach()
        one = _Waiting(
            recorder.next_seq(), recorder.step, current.seq, current.size, training, kind, values, version_of(values), classes,
            version_of(classes),
        )  # fmt: skip
        if self._count % _LOOKED_AT == 0 or values.numel() > _PUT_OFF:
            margins = self._judge([one])
            if training and margins is not None:
                self._batches.samples.scored(current.seq, _flat(classes), margins)
            return
        # Between the small operations of a short step everything is cold in the caches: many are judged at once.
        self._waiting.append(one)
        if len(self._waiting) >= _AT_ONCE:
            self._judge_waiting()

    def _judge_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        alike: dict[tuple[Any, ...], list[_Waiting]] = {}
        for one in waiting:
            if one.is_unchanged:
                alike.setdefault((one.kind, one.scores.shape[1:], one.labels.dtype), []).append(one)
        for group in alike.values():
            if self._judge(group) is None:
                # One label that is out of range must not cost the others.
                for one in group:
                    self._judge([one])

    def _judge(self, alike: list[_Waiting]) -> NDArray[Any] | None:
        """Record the margins of batches that fit together; None when they cannot be judged."""
        if not all(is_plain(one.scores) and is_plain(one.labels) for one in alike):
            return None
        with torch._C.DisableTorchFunction():
            # Joined by numpy: under autocast torch would change their formats, or refuse to.
            scores: NDArray[Any] = np.concatenate([one.scores.float().numpy() for one in alike])
            labels: NDArray[Any] = np.concatenate([_flat(one.labels) for one in alike])
        found = judged(alike[0].kind, scores, labels, sum(one.size for one in alike))
        if found is None:
            return None
        columns = [labels.astype("<i4").tobytes(), found[0].astype("<f4").tobytes(), found[1].astype("<i4").tobytes()]
        start = 0
        for one in alike:
            part = slice(4 * start, 4 * (start + one.size))
            start += one.size
            values = [column[part] for column in columns]
            self.recorder.row("score", (one.seq, one.step, one.batch, int(one.training), *values))
        return found[0]

    def finish(self) -> None:
        """Judge what was put off."""
        self._judge_waiting()


def _flat(labels: Tensor) -> NDArray[Any]:
    """Numpy does not know every format that targets of a binary loss may have."""
    values: NDArray[Any] = (labels.float() if labels.is_floating_point() else labels).reshape(-1).numpy()
    return values
