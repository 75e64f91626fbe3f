"""Turns what an adapter sees into rows, step by step. Nothing that goes wrong in here may reach the user's script."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from trueline.output import warn
from trueline.recorder.alignment import Alignment
from trueline.recorder.callsite import CallSites
from trueline.recorder.failed_watches import FailedWatches
from trueline.recorder.sampling import TRACED_STEPS, Sampling
from trueline.store import StoredTensor, Writer

_encode = msgspec.json.Encoder(enc_hook=str).encode
_MOST_EVENT_DETAILS = 20_000
# After the first step with a NaN or infinite loss or gradient this many steps are sampled, to see where it sits.
_URGENT_STEPS = 2
# Models beyond the first ones that are looked at closely when their training begins.
_MOST_CLOSE_LOOKS = 4


def to_json(value: Any) -> str:
    """JSON text of a plain value; NaN and infinities become null, what JSON does not know becomes its text."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        # File names and what is printed need not be text.
        return _encode(_as_text(value)).decode()


def _as_text(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_as_text(key): _as_text(part) for key, part in value.items()}
    return [_as_text(part) for part in value] if isinstance(value, list | tuple) else value


class Recorder:
    """Counts steps and happenings, decides what is sampled, and hands complete steps to the store.

    `busy` is True while a watch works: what it does itself is not the script's doing. `active` is False before the first
    framework is installed, after the end, in forked children, and from the moment on at which recording failed; every hook
    of an adapter looks at it first.
    """

    def __init__(
        self,
        open_writer: Callable[[], Writer],
        cwd: str,
        budget: float,
        *,
        kept_steps: frozenset[int] = frozenset(),
        keep_tensors: Callable[[int, dict[str, StoredTensor]], None] | None = None,
        eager: bool = False,
        graph_tensors: bool = False,
        scratch: Path | None = None,
        alignment: Alignment | None = None,
        failures: Path | None = None,
    ) -> None:
        """`eager`: the script is to run operation by operation where it asks to be compiled, as far as the framework allows.
        `graph_tensors`: what is compiled is to show its tensors, at the price of other graphs than the script's.
        `scratch`: a folder that an adapter may have files written to, and removes; None for nowhere.
        `alignment`: what makes this run comparable with another; None for a run that is recorded as it is.
        `failures`: the file that tracebacks of what fails in here go to."""
        self.call_sites = CallSites(cwd)
        self.sampling = Sampling(budget)
        self.eager = eager
        self.graph_tensors = graph_tensors
        self.scratch = scratch
        self.alignment = alignment
        self.active = False
        self.failure: str | None = None
        self.failed_watches = FailedWatches(failures)
        # Their names: asked in every call of every watch.
        self.off = self.failed_watches.off
        self.step = 0
        self.sampled = True
        self.traced = True
        self.sketched = True
        self.gradients_sketched = True
        self.spent = 0.0
        self.wait = 0.0
        self.busy = False
        # Told of files that are written out of sight of Python's own functions; see files.py.
        self.before_writing: Callable[[Any], None] = lambda _path: None
        # Told why recording has ended early.
        self.on_failure: Callable[[str], None] = lambda _reason: None
        self._open_writer = open_writer
        self._writer: Writer | None = None
        self._seq = 0
        self._rows: dict[str, list[Any]] = {}
        self._late: list[Any] = []
        self._step_started = perf_counter()
        self._kept_steps = kept_steps
        self._keep_tensors = keep_tensors
        self._tensors: dict[str, StoredTensor] = {}
        self._details_left = _MOST_EVENT_DETAILS
        self._urgent_steps: int | None = None
        self._close_looks = _MOST_CLOSE_LOOKS
        self._close_until = 0
        self._ended = False

    def start(self, **meta: str) -> None:
        """Open the rank file, once a framework is there to be recorded."""
        if self._writer is None and self.failure is None:
            try:
                self._writer = self._open_writer()
            except Exception as problem:  # noqa: BLE001 - a recorder that cannot write lets the training go on
                self.fail(problem)
                return
            self.active = True
            self._step_started = perf_counter()
        for key, value in meta.items():
            self.row("meta", (key, value))
        if self.off:
            self.row("meta", self.failed_watches.row())
        self.commit()

    def resume(self) -> None:
        """Go on after a pause: the time in between belongs to no step."""
        self._step_started = perf_counter()
        self.wait = 0.0
        self.spent = 0.0

    @property
    def keeps_tensors(self) -> bool:
        """Whether this step's tensors are wanted whole."""
        return self.step in self._kept_steps

    def keep_tensor(self, name: str, tensor: StoredTensor) -> None:
        self._tensors[name] = tensor

    def next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def location(self) -> int | None:
        """The id of the user's line that is running. Asked from a method of a watch that a replaced function called.

        Those two are passed over unseen: python makes an object of every frame that is looked at.
        """
        return self.call_sites.here(depth=4)

    def row(self, table: str, values: Any) -> None:
        """Add a row to what the next commit writes. A list may still be changed until then."""
        rows = self._rows.get(table)
        if rows is None:
            rows = self._rows[table] = []
        rows.append(values)

    def event(
        self,
        kind: str,
        *,
        subject: int | None = None,
        value: float | None = None,
        detail: dict[str, Any] | None = None,
        location: int | None = None,
    ) -> int:
        seq = self.next_seq()
        text = None
        if detail is not None and self._details_left > 0:
            self._details_left -= 1
            text = to_json(detail)
        self.row("event", (seq, self.step, kind, subject, location, value, text))
        return seq

    def look_closely(self) -> None:
        """Something new is about to be trained: this step and the next are looked at as the first ones are."""
        if self._close_looks and self.step >= TRACED_STEPS:
            self._close_looks -= 1
            self._close_until = self.step + TRACED_STEPS
            self.sampled = self.traced = self.sketched = self.gradients_sketched = True

    def end_step(
        self,
        *,
        seq: int,
        optimizer: int | None,
        loss: Any,
        grad_norm: Any,
        backwards: int,
        cleared: bool | None,
        with_gradient: int | None,
        without_gradient: int | None,
    ) -> None:
        """Close the step: its rows become durable, and the next step's sampling is decided.

        A loss that still lives on a device is read one step later, so that recording never waits for the device.
        """
        now = perf_counter()
        seconds = now - self._step_started
        values = [
            self.step, seq, optimizer, loss, grad_norm, 1, seconds, self.wait, int(self.sampled), backwards,
            None if cleared is None else int(cleared), with_gradient, without_gradient,
        ]  # fmt: skip
        late, self._late = self._late, []
        if isinstance(loss, float | None) and isinstance(grad_norm, float | None):
            late.append(values)
        else:
            # The row is replaced when its numbers are there: should the script be killed before, they are missing and the step
            # is not.
            self.row("step", [*values[:3], _known(loss), _known(grad_norm), *values[5:]])
            self._late.append(values)
        for row in late:
            self.row("step", _with_numbers(row))
            if not row[5] and self._urgent_steps is None:
                self._urgent_steps = _URGENT_STEPS
        self.commit()
        if self._tensors and self._keep_tensors is not None:
            tensors, self._tensors = self._tensors, {}
            try:
                self._keep_tensors(self.step, tensors)
            except Exception as problem:  # noqa: BLE001 - a full disk must not stop the training
                self.fail(problem)
        ended = perf_counter()
        self.sampling.step_ended(
            self.step, seconds=ended - self._step_started, spent=self.spent + ended - now, sampled=self.sampled
        )
        self.step += 1
        close = self.step < self._close_until
        self.sampled = close or self.sampling.samples(self.step) or self.step in self._kept_steps or self._is_urgent()
        self.traced = close or self.step < TRACED_STEPS
        self.sketched = close or (self.sampled and self.sampling.with_sketches(self.step))
        self.gradients_sketched = self.sampled and self.sampling.with_gradient_sketches(self.step)
        self.spent = 0.0
        self.wait = 0.0
        self._step_started = ended

    def _is_urgent(self) -> bool:
        if not self._urgent_steps:
            return False
        self._urgent_steps -= 1
        return True

    def commit(self) -> None:
        """Hand all rows so far to the store."""
        if self._writer is None:
            return
        sites = self.call_sites
        if sites.new_rows:
            self._rows["location"] = sites.new_rows
            sites.new_rows = []
        rows, self._rows = self._rows, {}
        try:
            self._writer.commit(rows)
        except Exception as problem:  # noqa: BLE001 - a full disk or a vanished directory must not stop the training
            self.fail(problem)

    def contain(self, watch: str, problem: Exception) -> None:
        """Take off a watch that failed, and go on with all others. Stored at once: a run that is killed in this step, or that
        can write nothing any more, was not complete either."""
        if self.failure is not None or watch in self.off:
            return
        busy, self.busy = self.busy, True
        warn(self.failed_watches.add(watch, self.step, problem))
        self.busy = busy
        if self._writer is None or not self.active:
            return
        try:
            self._writer.commit({"meta": [self.failed_watches.row()]})
        except Exception as cannot_write:  # noqa: BLE001 - a full disk must not stop the training
            self.fail(cannot_write)

    def fail(self, problem: BaseException) -> None:
        """Stop recording for good, say so once, and let the training go on."""
        if self.failure is not None:
            return
        self.failed_watches.keep_traceback("the recorder", self.step, problem)
        self.active = False
        self.failure = f"{type(problem).__name__}: {problem}"
        self._rows = {}
        self.on_failure(self.failure)
        warn(
            f"recording stopped at step {self.step} ({self.failure}). The script goes on; "
            "what was recorded until then can be checked."
        )

    def forget(self) -> None:
        """In a forked child: it belongs to the script, not to the recording."""
        self.active = False

    def abandon(self) -> None:
        """Give up this record: other processes make it anew."""
        self.active = False
        self._rows = {}
        if self._writer is not None:
            self._writer.discard()
            self._writer = None

    def end(self) -> None:
        """Write what is left. Nothing is recorded any more."""
        if self._writer is not None and self.failure is None and not self._ended:
            try:
                for row in self._late:
                    self.row("step", _with_numbers(row))
            except Exception as problem:  # noqa: BLE001 - a device that failed the script cannot be read any more
                self.failure = f"{type(problem).__name__}: {problem}"
            if self.alignment is not None:
                self.alignment.close()
                self.row("meta", ("alignment", to_json(self.alignment.summary())))
            self.row("meta", ("ended", "true"))
            self.commit()
        self._ended = True
        self.active = False

    def close(self) -> None:
        """Write what is left and close the rank file."""
        self.end()
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _known(number: Any) -> float | str | None:
    return _storable(number) if isinstance(number, float) else None


def _storable(number: float | None) -> float | str | None:
    return "nan" if number is not None and math.isnan(number) else number


def _with_numbers(row: list[Any]) -> list[Any]:
    """Turn the step's device scalars into numbers and set its finite flag."""
    loss = None if row[3] is None else float(row[3])
    norm = None if row[4] is None else float(row[4])
    row[3], row[4] = _storable(loss), _storable(norm)
    row[5] = int((loss is None or math.isfinite(loss)) and (norm is None or math.isfinite(norm)))
    return row
