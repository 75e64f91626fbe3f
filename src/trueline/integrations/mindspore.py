"""Recording what `mindspore.train.Model` trains, by a callback: for notebooks, and scripts that `trueline run` does not start.

    model.train(3, dataset, callbacks=[TruelineCallback(name="first-try")])

The run is the same as that of `trueline run`. It starts when the callback is made and ends with the training: a callback that is
made before the network also knows the lines that built the layers.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from mindspore.train import Callback

from trueline.launch.recording import DEFAULT_BUDGET, Recording, is_recording, unless_impossible
from trueline.output import warn


class TruelineCallback(Callback):  # type: ignore[misc]
    """Records one training: a call of `Model.train` or `Model.fit`, with the evaluations inside of it.

    `name`, `budget` and `tensors` are those of `trueline.record`. Under `trueline run`, which records the whole script anyway,
    the callback does nothing.
    """

    # Made, and not yet handed to a training.
    _waiting: ClassVar[TruelineCallback | None] = None

    def __init__(self, name: str | None = None, *, budget: float = DEFAULT_BUDGET, tensors: Iterable[int] = ()) -> None:
        super().__init__()
        self._recording: Recording | None = None
        self._directory: Path | None = None
        # `Model.fit` enters its callbacks again for every evaluation inside of the training.
        self._depth = 0
        if TruelineCallback._waiting is not None:
            TruelineCallback._waiting.abandon()
        if is_recording():
            return
        script = sys.argv[0] or None
        stem = Path(script).stem if script else "training"
        recording = unless_impossible(
            lambda: Recording(stem, list(sys.argv), name=name, script=script, budget=budget, kept_steps=frozenset(tensors))
        )
        if recording is None:
            return
        self._recording = recording
        self._directory = recording.directory
        recording.start()
        TruelineCallback._waiting = self
        atexit.register(self.abandon)

    def abandon(self) -> None:
        """End the run although no training has come, or none that ended."""
        if TruelineCallback._waiting is self:
            TruelineCallback._waiting = None
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.stop(status="interrupted", error="No training ended while the callback recorded.")

    @property
    def directory(self) -> Path | None:
        """The run directory; None where the callback does not record."""
        return self._directory

    def __enter__(self) -> Self:
        self._depth += 1
        if TruelineCallback._waiting is self:
            TruelineCallback._waiting = None
        if self._recording is None and self._directory is not None and self._depth == 1:
            warn("this callback has recorded a training already; the next one is not recorded. Make a TruelineCallback for each.")
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None) -> None:
        """The training is over, by itself or by an exception, which goes on."""
        self._depth -= 1
        if self._depth:
            return
        recording, self._recording = self._recording, None
        atexit.unregister(self.abandon)
        if recording is None:
            return
        if problem is None:
            recording.stop()
        elif isinstance(problem, KeyboardInterrupt):
            recording.stop(status="interrupted", error="KeyboardInterrupt")
        else:
            recording.stop(status="failed", error=f"{type(problem).__name__}: {problem}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A recording is one, however often the list of callbacks is copied."""
        return self
