"""Random numbers that a script draws while it trains: in aligned runs the same ones on both sides (recorder/noise.py).

They are replaced where primitives give them: `ops.randn`, `ops.normal`, `ops.uniform` and the like all ask one of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import Tensor
from mindspore.ops.operations import random_ops
from numpy.typing import NDArray

from trueline.adapters.base import Watch, guarded
from trueline.recorder.noise import Noise
from trueline.recorder.patches import Patches

# What takes the place of the tensor that was drawn, by the arguments that the primitive was given.
_Replacing = Callable[..., NDArray[Any] | None]


def _normal(noise: Noise, step: int, drawn: Tensor, *_: Any) -> NDArray[Any] | None:
    return noise.normal(step, tuple(drawn.shape))


def _uniform(noise: Noise, step: int, drawn: Tensor, *_: Any) -> NDArray[Any] | None:
    return noise.uniform(step, tuple(drawn.shape))


def _whole_numbers(noise: Noise, step: int, drawn: Tensor, _shape: Any, low: Tensor, high: Tensor) -> NDArray[Any] | None:
    return noise.integers(step, int(low), int(high), tuple(drawn.shape))


def _order(noise: Noise, step: int, drawn: Tensor, *_: Any) -> NDArray[Any] | None:
    return noise.permutation(step, len(drawn))


_PRIMITIVES: dict[type, _Replacing] = {
    random_ops.StandardNormal: _normal,
    random_ops.UniformReal: _uniform,
    random_ops.UniformInt: _whole_numbers,
    random_ops.RandpermV2: _order,
}


class NoiseWatch(Watch):
    """Watches what draws noise, whole numbers and orders, in runs that are aligned to others or that others are aligned to."""

    def install(self, patches: Patches) -> None:
        if self.recorder.alignment is None:
            return
        for primitive, replacing in _PRIMITIVES.items():
            patches.replace(primitive, "__call__", self._watched(primitive.__call__, replacing))

    def _watched(self, original: Any, replacing: _Replacing) -> Any:
        def watched(primitive: Any, *args: Any) -> Any:
            drawn = original(primitive, *args)
            replaced = self._replaced(drawn, replacing, args)
            return drawn if replaced is None else replaced

        return watched

    @guarded
    def _replaced(self, drawn: Any, replacing: _Replacing, args: tuple[Any, ...]) -> Tensor | None:
        alignment = self.recorder.alignment
        if alignment is None or not isinstance(drawn, Tensor):
            return None
        values = replacing(alignment.noise, self.recorder.step, drawn, *args)
        return None if values is None else Tensor(values.astype(ms.dtype_to_nptype(drawn.dtype)), drawn.dtype)
