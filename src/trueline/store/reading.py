"""A run that knows which parts of its record were read: what a conclusion rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trueline.model import Event, FailedWatch, TensorStat
from trueline.model.parts import EVENTS
from trueline.store.reader import Run

# The parts that each property of `Run` gives. What gives others must be here: a test holds it.
_GIVES: dict[str, tuple[str, ...]] = {
    "modules": ("module",),
    "roots": ("module",),
    # Named after their modules.
    "parameters": ("parameter", "module"),
    "optimizers": ("optimizer",),
    "optimizer_parameters": ("optimizer_parameter",),
    "hyperparameters": ("hyperparameter",),
    "loaders": ("loader",),
    "steps": ("step",),
    "events": EVENTS,
    "root_calls": ("root_call",),
    "batches": ("batch",),
    "field_stats": ("field_stat",),
    "scores": ("score",),
    "samples": ("sample",),
    "loss_calls": ("loss_call",),
    "ops": ("op",),
    "snapshots": ("snapshot",),
}


class RunBeingRead(Run):
    """A view of a run. `missing` gathers the watches that failed and whose parts were read; views of other ranks, and of runs
    beside this one, gather in the same place."""

    def __init__(self, run: Run, missing: dict[str, FailedWatch] | None = None) -> None:
        # Its connection, and what is known of it already.
        vars(self).update(vars(run))
        self.run = run
        self.missing = {} if missing is None else missing

    def of_rank(self, rank: int) -> Run:
        return RunBeingRead(self.run.of_rank(rank), self.missing)

    def beside(self, directory: Path) -> Run:
        return RunBeingRead(self.run.beside(directory), self.missing)

    def events_of(self, *kinds: str) -> list[Event]:
        self.note_read(tuple(f"event:{kind}" for kind in kinds))
        return self.run.events_of(*kinds)

    def stats(self, role: str, subject: int | None = None) -> list[TensorStat]:
        self.note_read((f"stat:{role}",))
        return self.run.stats(role, subject)

    def note_read(self, parts: tuple[str, ...]) -> None:
        for failed in self.run.failed_watches:
            if not set(parts).isdisjoint(failed.parts):
                self.missing.setdefault(failed.watch, failed)


def _property(name: str, parts: tuple[str, ...]) -> property:
    def read(view: RunBeingRead) -> Any:
        view.note_read(parts)
        return getattr(view.run, name)

    return property(read)


for _name, _parts in _GIVES.items():
    setattr(RunBeingRead, _name, _property(_name, _parts))
