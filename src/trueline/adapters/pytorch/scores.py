"""How a classifier judges each sample: its margin and the predicted class, at losses and in evaluation."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.data import BatchWatch
from trueline.adapters.pytorch.tensors import is_plain
from trueline.record import Recorder

# Of the run's time so far, after a first allowance in seconds.
_SHARE = 0.01
_ALLOWANCE = 0.05
_OVER_CLASSES = {"cross_entropy", "nll_loss", "multi_margin_loss"}
_BINARY = {"binary_cross_entropy_with_logits", "binary_cross_entropy"}
SCORED = _OVER_CLASSES | _BINARY
_MOST_CLASSES = 20_000
# Scores of at most this many values are put aside and judged together, so many batches at once; every so many is judged at
# once, while its content can still be kept for the review sheet.
_PUT_OFF = 8192
_AT_ONCE = 64
_LOOKED_AT = 8
# Probabilities are turned into logits, which are infinite at 0 and 1.
_CLOSEST = 1e-6


class ScoreWatch(Watch):
    """Told of losses and of outputs in evaluation; keeps what it is worth within a share of the run's time."""

    def __init__(self, recorder: Recorder, batches: BatchWatch) -> None:
        super().__init__(recorder)
        self._batches = batches
        self._started = perf_counter()
        self._spent = 0.0
        self._last: tuple[int, bool] | None = None
        self._binary_loss: str | None = None
        self._count = -1
        self._waiting: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}

    @property
    def _affordable(self) -> bool:
        return self._spent <= _ALLOWANCE + _SHARE * (perf_counter() - self._started)

    @guarded
    def at_loss(self, kind: str, scores: Any, target: Any, *, training: bool) -> None:
        """A loss compares the scores of the current batch with their targets."""
        row = self._batches.current
        if row is None or not self._affordable or not isinstance(scores, Tensor) or not isinstance(target, Tensor):
            return
        if kind in _BINARY:
            self._binary_loss = kind
        started = perf_counter()
        self._keep(row.seq, row.size, kind, scores, target, training=training)
        self._spent += perf_counter() - started

    @guarded
    def at_output(self, output: Tensor) -> None:
        """A model gave this output outside of training; its batch may have come with targets."""
        row = self._batches.current
        if row is None or row.classes is None or not self._affordable:
            return
        started = perf_counter()
        labels = np.frombuffer(row.classes, "<f8")
        if output.dim() == 2 and output.shape[1] > 1:
            self._keep_judged(row.seq, row.size, "cross_entropy", output, labels, training=False)
        elif output.numel() == row.size and self._binary_loss is not None:
            self._keep_judged(row.seq, row.size, self._binary_loss, output, labels, training=False)
        self._spent += perf_counter() - started

    def _keep(self, batch: int, size: int, kind: str, scores: Tensor, target: Tensor, *, training: bool) -> None:
        if not is_plain(target) or not target.is_cpu or target.numel() != size:
            return
        if kind in _OVER_CLASSES and target.is_floating_point():
            return
        with torch._C.DisableTorchFunction():
            self._keep_judged(batch, size, kind, scores, target.detach().reshape(-1).numpy(), training=training)

    def _keep_judged(self, batch: int, size: int, kind: str, scores: Tensor, labels: NDArray[Any], *, training: bool) -> None:
        if self._last == (batch, training) or not is_plain(scores) or not scores.is_cpu or not scores.is_floating_point():
            return
        with torch._C.DisableTorchFunction():
            values: NDArray[Any] = scores.detach().float().numpy()
        self._last = (batch, training)
        recorder = self.recorder
        self._count += 1
        if values.size <= _PUT_OFF and self._count % _LOOKED_AT and len(values) == size == len(labels):
            # Between the small operations of a short step a copy is all that can be afforded: many are judged at once.
            key = (kind, values.shape[1:], labels.dtype.str)
            self._waiting.setdefault(key, []).append(
                (recorder.next_seq(), recorder.step, batch, training, values.copy(), labels.copy())
            )
            if len(self._waiting[key]) >= _AT_ONCE:
                self._judge_waiting(key)
            return
        judged = _judged(kind, values, labels, size)
        if judged is not None:
            if training:
                self._batches.samples.scored(batch, labels, judged[0])
            self._row(recorder.next_seq(), recorder.step, batch, training, labels, *judged)

    def _judge_waiting(self, key: tuple[Any, ...]) -> None:
        waiting = self._waiting.pop(key)
        values = np.concatenate([entry[4] for entry in waiting])
        labels = np.concatenate([entry[5] for entry in waiting])
        judged = _judged(key[0], values, labels, len(labels))
        if judged is None:
            # One label that is out of range must not cost the others.
            for seq, step, batch, training, own, own_labels in waiting:
                single = _judged(key[0], own, own_labels, len(own_labels))
                if single is not None:
                    self._row(seq, step, batch, training, own_labels, *single)
            return
        start = 0
        for seq, step, batch, training, _, own_labels in waiting:
            part = slice(start, start + len(own_labels))
            start += len(own_labels)
            self._row(seq, step, batch, training, own_labels, judged[0][part], judged[1][part])

    def finish(self) -> None:
        """Judge what was put off."""
        for key in list(self._waiting):
            self._judge_waiting(key)

    def _row(
        self,
        seq: int,
        step: int,
        batch: int,
        training: bool,  # noqa: FBT001 - the columns of the table
        labels: NDArray[Any],
        margins: NDArray[Any],
        predicted: NDArray[Any],
    ) -> None:
        self.recorder.row(
            "score",
            (
                seq, step, batch, int(training), labels.astype("<i4").tobytes(), margins.astype("<f4").tobytes(),
                predicted.astype("<i4").tobytes(),
            ),
        )  # fmt: skip


def _judged(kind: str, scores: NDArray[Any], labels: NDArray[Any], size: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    return _of_classes(scores, labels, size) if kind in _OVER_CLASSES else _of_two(kind, scores, labels, size)


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
