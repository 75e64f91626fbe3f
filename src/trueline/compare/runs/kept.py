"""The whole tensors of an aligned run, by what they are and whose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import RunNotFound
from trueline.store import Run, read_tensors
from trueline.store.joined_names import content_of, parts_of

Array = NDArray[Any]
# What has its features along the last axis; parameters have them along the first.
_BY_FEATURES = {"output", "output_grad"}


class Kept:
    """Tensors that a run kept of its first steps, named `role/root.path/position`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._steps: dict[int, dict[str, Array]] = {}

    def step(self, number: int) -> dict[str, Array]:
        if number not in self._steps:
            try:
                self._steps[number] = read_tensors(self._run.directory, number, self._run.rank)
            except RunNotFound:
                self._steps[number] = {}
        return self._steps[number]

    def get(self, step: int, role: str, path: str, position: int = 0) -> Array | None:
        """`path` may stand for several layers or parameters, whose tensors are then taken together."""
        held = self.step(step)
        if role == "input":
            return held.get(f"{role}/{parts_of(path)[0]}/{position}")
        axis = -1 if role in _BY_FEATURES else 0
        return content_of(path, lambda name: held.get(f"{role}/{name}/{position}"), axis=axis)

    def positions(self, step: int, role: str, path: str) -> list[int]:
        """The positions at which this was kept: four to a call."""
        prefix = f"{role}/{parts_of(path)[0]}/"
        return sorted(int(name[len(prefix) :]) for name in self.step(step) if name.startswith(prefix))

    def update(self, step: int, path: str) -> Array | None:
        """What the step added to a parameter."""
        before, after = self.get(step, "parameter", path), self.get(step + 1, "parameter", path)
        if before is None or after is None or before.dtype.kind != "f":
            return None
        return after.astype(np.float64) - before.astype(np.float64)
