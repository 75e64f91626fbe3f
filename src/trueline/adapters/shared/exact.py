"""Layers once more in float64: how much of what they give is rounding, and how far they carry noise in what they are given.

The first is what two kernels that compute the same may be apart by; the second tells an error that a layer inherits from one
that it makes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.adapters.base import Watch, guarded
from trueline.record.alignment import OwnError
from trueline.record.statistics import relative_distance

Array = NDArray[Any]
Change = Callable[[Array], Array]
# Layers that compute the same from the same at any time.
_KINDS = {
    "linear", "conv", "norm", "batch_norm", "layer_norm", "embedding", "recurrent", "attention", "softmax", "log_softmax",
    "sigmoid", "activation", "pool",
}  # fmt: skip
_UNIT = float(np.finfo(np.float32).eps)


class ExactReplay(Watch):
    """Replays the layers of the first step of aligned runs."""

    @guarded
    def before(self, layer: Any, kind: str, args: Any, kwargs: Any) -> list[tuple[Array, Array]] | None:
        """What a layer is about to give, exactly: for what it is given, and for that with noise; None where it cannot be told."""
        alignment = self.recorder.alignment
        if alignment is None or alignment.perturbs or self.recorder.step or kind not in _KINDS:
            return None
        try:
            copied = self.in_float64(layer)
            if copied is None:
                return None
            exact, noisy = (self.floats_in(self.given(copied, args, kwargs, change)) for change in (_as_it_is, _with_noise))
        except Exception:  # noqa: BLE001 - layers that do not compute in float64 are judged by the perturbed repetition alone
            return None
        return list(zip(exact, noisy, strict=True))

    @guarded
    def after(self, path: str, call: int, exact: list[tuple[Array, Array]], output: Any) -> None:
        """Note how far what it gave is from that."""
        alignment, outputs = self.recorder.alignment, self.floats_in(output)
        if alignment is None or len(exact) != len(outputs):
            return
        for place, ((true, noisy), given) in enumerate(zip(exact, outputs, strict=True)):
            if given.dtype == np.float32 and true.shape == given.shape and _is_finer(noisy):
                own = OwnError(relative_distance(given, true), relative_distance(noisy, true) / _UNIT)
                alignment.note_own_error(path, call * 4 + place, own)

    @abstractmethod
    def in_float64(self, layer: Any) -> Any:
        """A copy of a layer of the framework's own that computes in float64; None where it is none."""

    @abstractmethod
    def given(self, copied: Any, args: Any, kwargs: Any, change: Change) -> Any:
        """What the copy gives for arguments whose floating-point values are changed."""

    @abstractmethod
    def floats_in(self, output: Any) -> list[Array]:
        """The floating-point tensors of what a layer gave."""


def _as_it_is(values: Array) -> Array:
    return values


def _with_noise(values: Array) -> Array:
    """One unit in the last place of float32 beside, up or down: of each value, or of what is usual among them where that is
    more, as it is behind a sum."""
    usual = float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
    signs = np.random.default_rng(values.size).integers(0, 2, values.shape) * 2 - 1
    return np.asarray(values + signs * _UNIT * np.maximum(np.abs(values), usual))


def _is_finer(values: Array) -> bool:
    """Whether values were computed in float64: some kernels take it, and compute in float32."""
    return not np.array_equal(values, values.astype(np.float32))
