"""How a classifier judges each sample: its margin and the predicted class, at losses and in evaluation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.adapters.base import Watch, guarded
from trueline.adapters.shared.batches import Current
from trueline.adapters.shared.margins import BINARY, OVER_CLASSES, judged
from trueline.recorder import Recorder

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
    scores: Any
    scores_version: int
    labels: Any
    labels_version: int


class ScoreWatch(Watch, ABC):
    """Told of losses and of outputs in evaluation; keeps what it is worth within a share of the run's time. Each framework tells
    how its tensors are read."""

    def __init__(self, recorder: Recorder, batches: Any) -> None:
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
        """By this thread's processor time: neither what the script computes meanwhile, which it would wait for a little later,
        nor other programs of a busy machine are to leave the rest of the training unseen."""
        self._spent += thread_time() - started
        self.due = self._started + (self._spent - _ALLOWANCE) / _SHARE

    @guarded
    def at_loss(self, kind: str, scores: Any, target: Any, *, training: bool) -> None:
        """A loss compares the scores of the current batch with their targets, and it is time to look at them."""
        started = thread_time()
        current = self._batches.current
        if current is None:
            return
        if kind in BINARY:
            self._binary_loss = kind
        if self.are_targets(target, current.size, whole=kind in OVER_CLASSES):
            self._keep(current, kind, scores, target, training=training)
        self._account(started)

    @guarded
    def at_output(self, output: Any) -> None:
        """A model gave this output outside of training; its batch may have come with targets."""
        current = self._batches.current
        if current is None or current.classes is None or perf_counter() < self.due:
            return
        started = thread_time()
        kind = "cross_entropy" if len(output.shape) == 2 and output.shape[1] > 1 else self._binary_loss
        if kind is not None and (kind in OVER_CLASSES or math.prod(output.shape) == current.size):
            labels = self.labels_tensor(np.frombuffer(current.classes, "<f8").copy())
            self._keep(current, kind, output, labels, training=False)
        self._account(started)

    def _keep(self, current: Current, kind: str, scores: Any, labels: Any, *, training: bool) -> None:
        if self._last == (current.seq, training) or not self.are_scores(scores):
            return
        recorder = self.recorder
        self._last = (current.seq, training)
        self._count += 1
        values, classes = self.detached(scores), self.detached(labels)
        one = _Waiting(
            recorder.next_seq(), recorder.step, current.seq, current.size, training, kind, values, self.version_of(values),
            classes, self.version_of(classes),
        )  # fmt: skip
        if self._count % _LOOKED_AT == 0 or math.prod(values.shape) > _PUT_OFF:
            margins = self._judge([one])
            if training and margins is not None:
                self._batches.samples.scored(current.seq, self.labels_array(classes), margins)
            return
        # Between the small operations of a short step everything is cold in the caches: many are judged at once.
        self._waiting.append(one)
        if len(self._waiting) >= _AT_ONCE:
            self._judge_waiting()

    def _judge_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        alike: dict[tuple[Any, ...], list[_Waiting]] = {}
        for one in waiting:
            if (self.version_of(one.scores), self.version_of(one.labels)) == (one.scores_version, one.labels_version):
                alike.setdefault((one.kind, tuple(one.scores.shape[1:]), str(one.labels.dtype)), []).append(one)
        for group in alike.values():
            if self._judge(group) is None:
                # One label that is out of range must not cost the others.
                for one in group:
                    self._judge([one])

    def _judge(self, alike: list[_Waiting]) -> NDArray[Any] | None:
        """Record the margins of batches that fit together; None when they cannot be judged."""
        arrays = [(self.scores_array(one.scores), self.labels_array(one.labels)) for one in alike]
        if any(part is None for pair in arrays for part in pair):
            return None
        scores: NDArray[Any] = np.concatenate([pair[0] for pair in arrays])
        labels: NDArray[Any] = np.concatenate([pair[1] for pair in arrays])
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

    @guarded
    def finish(self) -> None:
        """Judge what was put off."""
        self._judge_waiting()

    @abstractmethod
    def are_scores(self, scores: Any) -> bool:
        """Whether this is a tensor of numbers, one or several per sample."""

    @abstractmethod
    def are_targets(self, target: Any, size: int, *, whole: bool) -> bool:
        """Whether this is one number per sample; a whole one, if so wanted."""

    @abstractmethod
    def labels_tensor(self, labels: NDArray[Any]) -> Any:
        """Labels that were stored, in the form in which they come with a loss."""

    @abstractmethod
    def detached(self, tensor: Any) -> Any:
        """The same values, outside of any graph."""

    @abstractmethod
    def version_of(self, tensor: Any) -> int:
        """How often a tensor was changed in place."""

    @abstractmethod
    def scores_array(self, scores: Any) -> NDArray[Any] | None:
        """Their values; None where they cannot be read here."""

    @abstractmethod
    def labels_array(self, labels: Any) -> NDArray[Any] | None:
        """Their values in one row; None where they cannot be read here."""
