"""The rows that say which parameters an optimizer holds, and how often it stepped with and without their gradients."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from trueline.adapters.base import Watch, guarded
from trueline.adapters.shared.registry import Registry
from trueline.recorder import Recorder
from trueline.recorder.identity import ByIdentity

# Positions in the rows of the table `optimizer_parameter`.
GROUP, PARAMETER, STEPS, WITHOUT_GRADIENT = 1, 3, 5, 6


class Holding(Protocol):
    """What is known of one optimizer: its steps so far, and a row for each tensor that it holds."""

    id: int
    steps: int
    rows: list[list[Any]]
    tensors: list[weakref.ref[Any]]


class HeldParameters(Watch):
    """The part of the watch of optimizers that does not depend on how a framework steps them."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._parameters = registry
        self._states: ByIdentity = ByIdentity()
        registry.on_new_parameters.append(self._resolve_parameters)

    @guarded
    def _resolve_parameters(self) -> None:
        """A module was called for the first time: its parameters may be held by an optimizer already."""
        for state in self._states.values():
            for row, reference in zip(state.rows, state.tensors, strict=True):
                tensor = reference()
                key = None if tensor is None or row[PARAMETER] is not None else self._parameters.parameter_ids.get(tensor)
                if key is not None:
                    row[PARAMETER] = key
                    self._write_row(state, row)

    def _write_rows(self, state: Holding) -> None:
        for row in state.rows:
            self._write_row(state, row)

    def _write_row(self, state: Holding, row: list[Any]) -> None:
        """The rows in memory hold the number of steps before the tensor came in; those on disk the number since."""
        self.recorder.row("optimizer_parameter", (*row[:STEPS], state.steps - row[STEPS], row[WITHOUT_GRADIENT]))

    @guarded
    def finish(self) -> None:
        for state in self._states.values():
            self._write_rows(state)
