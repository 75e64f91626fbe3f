"""Layers once more in float64: how much of what they give is rounding, and how far they carry noise in what they are given.

The first is what two kernels that compute the same may be apart by; the second tells an error that a layer inherits from one
that it makes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.adapters.base import Watch, guarded
from trueline.recorder import Recorder
from trueline.recorder.alignment import OwnError
from trueline.recorder.noise import own_generator
from trueline.recorder.statistics import relative_distance

Array = NDArray[Any]
Change = Callable[[Array], Array]
# Layers that compute the same from the same at any time.
_KINDS = {
    "linear", "conv", "norm", "batch_norm", "layer_norm", "embedding", "recurrent", "attention", "softmax", "log_softmax",
    "sigmoid", "activation", "pool",
}  # fmt: skip
_UNIT = float(np.finfo(np.float32).eps)


class Call(msgspec.Struct):
    """A call of a layer that is to be replayed: its copy, what it was given, and what it gave."""

    layer: Any
    given: Any
    path: str = ""
    number: int = 0
    outputs: list[Array] = []


class ExactReplay(Watch):
    """Replays the layers of the first step of aligned runs."""

    # Whether a replay that fails leaves the framework as it was, in the middle of a forward pass.
    at_once = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._waiting: list[Call] = []

    @guarded
    def before(self, layer: Any, kind: str, args: Any, kwargs: Any) -> Call | None:
        """Keep a layer and what it is about to be given; None for what is not replayed."""
        alignment = self.recorder.alignment
        if alignment is None or alignment.perturbs or self.recorder.step or kind not in _KINDS:
            return None
        try:
            copied = self.in_float64(layer)
            return None if copied is None else Call(copied, self.copied((args, kwargs)))
        except Exception:  # noqa: BLE001 - what cannot be copied is judged by the perturbed repetition alone
            return None

    @guarded
    def after(self, path: str, number: int, call: Call, output: Any) -> None:
        """The layer (`root.path`) has given this, at its call of this number."""
        call.path, call.number, call.outputs = path, number, self.floats_in(output)
        self._waiting.append(call)
        if self.at_once:
            self.settle()

    @guarded
    def settle(self) -> None:
        """Replay what waits for it."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            # Layers that do not compute in float64 are judged by the perturbed repetition alone.
            with suppress(Exception):
                self._note(call, *(self.floats_in(self.replayed(call, change)) for change in (_as_it_is, _with_noise)))

    def _note(self, call: Call, exact: list[Array], noisy: list[Array]) -> None:
        alignment = self.recorder.alignment
        if alignment is None or not len(exact) == len(noisy) == len(call.outputs):
            return
        for place, (true, moved, given) in enumerate(zip(exact, noisy, call.outputs, strict=True)):
            if given.dtype == np.float32 and true.shape == given.shape and _is_finer(moved):
                own = OwnError(relative_distance(given, true), relative_distance(moved, true) / _UNIT)
                alignment.note_own_error(call.path, call.number * 4 + place, own)

    @abstractmethod
    def in_float64(self, layer: Any) -> Any:
        """A copy of a layer of the framework's own that computes in float64; None where it is none."""

    @abstractmethod
    def copied(self, given: Any) -> Any:
        """Arguments of a layer, their floating-point tensors as arrays of float64."""

    @abstractmethod
    def replayed(self, call: Call, change: Change) -> Any:
        """What the copy gives for arguments whose floating-point values are changed."""

    @abstractmethod
    def floats_in(self, output: Any) -> list[Array]:
        """The floating-point tensors of what a layer gave."""


def changed_in(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """A nest of tuples, lists and dictionaries, with all values of one kind changed."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, dict):
        return {name: changed_in(part, kind, change) for name, part in value.items()}
    return type(value)(changed_in(part, kind, change) for part in value) if type(value) in (tuple, list) else value


def _as_it_is(values: Array) -> Array:
    return values


def _with_noise(values: Array) -> Array:
    """One unit in the last place of float32 beside, up or down: of each value, or of what is usual among them where that is
    more, as it is behind a sum."""
    usual = float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
    signs = own_generator(values.size).integers(0, 2, values.shape) * 2 - 1
    return np.asarray(values + signs * _UNIT * np.maximum(np.abs(values), usual))


def _is_finer(values: Array) -> bool:
    """Whether values were computed in float64: some kernels take it, and compute in float32."""
    return not np.array_equal(values, values.astype(np.float32))
