"""Statistics, sketches and digests of MindSpore tensors, through numpy: on the CPU an array shares a tensor's memory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import mindspore as ms
import numpy as np
import xxhash
from mindspore import Tensor
from numpy.typing import NDArray

from trueline.recorder.sketch import sketch as array_sketch
from trueline.recorder.statistics import SMALLEST_SQUARE, Statistics
from trueline.recorder.statistics import row_spread as array_row_spread
from trueline.recorder.statistics import statistics as array_statistics
from trueline.store import StoredTensor


def tensors_in(value: Any, most: int = 16) -> list[Tensor]:
    """The tensors in a nest of tuples, lists and dictionaries, in order."""
    found: list[Tensor] = []
    _gather(value, found, most)
    return found


def _gather(value: Any, found: list[Tensor], most: int) -> None:
    if len(found) >= most:
        return
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, tuple | list):
        for part in value:
            _gather(part, found, most)
    elif isinstance(value, Mapping):
        for part in value.values():
            _gather(part, found, most)


def dtype_name(tensor: Tensor | NDArray[Any]) -> str:
    return str(tensor.dtype).lower()


def is_plain(tensor: Tensor | NDArray[Any]) -> bool:
    """Whether a tensor has dense values that can be read."""
    return isinstance(tensor, np.ndarray) or (isinstance(tensor, Tensor) and not getattr(tensor, "has_init", False))


def array_of(tensor: Tensor | NDArray[Any]) -> NDArray[Any]:
    """The values of a tensor, waiting for them if they are still being computed. bfloat16, which numpy lacks, as float32."""
    if isinstance(tensor, np.ndarray):
        return tensor
    values: NDArray[Any] = (tensor.float() if tensor.dtype == ms.bfloat16 else tensor).asnumpy()
    return values


def _floats(tensor: Tensor | NDArray[Any]) -> NDArray[Any]:
    values = array_of(tensor)
    if values.dtype.kind == "c":
        values = values.view(values.real.dtype)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def statistics(tensor: Tensor | NDArray[Any]) -> Statistics:
    """The numbers of a row of `tensor_stat`, over the finite values."""
    # Infinite values are the script's, and so would be a warning about them.
    with np.errstate(all="ignore"):
        return array_statistics(_floats(tensor))


def sketch(tensor: Tensor | NDArray[Any]) -> bytes:
    """The 64-number sketch of recorder/sketch.py."""
    return array_sketch(_floats(tensor)).tobytes()


def digest(tensor: Tensor) -> str:
    """A hash of the content."""
    return str(xxhash.xxh3_64_hexdigest(np.ascontiguousarray(array_of(tensor)).reshape(-1).view(np.uint8).data))


def stored(tensor: Tensor) -> StoredTensor:
    """The tensor whole, as raw bytes."""
    values = np.array(array_of(tensor), order="C")
    return StoredTensor(str(values.dtype), tuple(values.shape), values.reshape(-1).view(np.uint8))


def fill(parameter: ms.Parameter, values: NDArray[Any]) -> None:
    """Put other content into a parameter."""
    parameter.set_data(Tensor(np.array(values), parameter.dtype))


def row_spread(tensor: Tensor) -> float | None:
    """The largest difference between rows (first axis) within any column: 0 when all rows are equal."""
    return array_row_spread(_floats(tensor))


def any_nonzero(tensor: Tensor) -> bool:
    return bool(np.any(array_of(tensor)))


def dead_share(tensor: Tensor, role: str, zero_share: float | None) -> float | None:
    """The share of units that are zero throughout: see model.TensorStat."""
    if len(tensor.shape) < 2 or zero_share is None or role not in {"gradient", "output"}:
        return None
    if role == "output" and zero_share < 0.5:
        return None
    axis = 0 if role == "gradient" else 2 if len(tensor.shape) == 3 else 1
    if zero_share * tensor.shape[axis] < 1:
        # There are not enough zeros for a single unit.
        return 0.0
    alive = np.moveaxis(array_of(tensor) != 0, axis, 0).reshape(tensor.shape[axis], -1).any(axis=1)
    return 1.0 - float(alive.sum()) / int(tensor.shape[axis])


def evenly_drawn(tensor: Tensor, most: int) -> NDArray[Any]:
    """A copy of at most so many of its values, from all over it."""
    flat = _floats(tensor).reshape(-1)
    return flat[:: max(1, -(-flat.size // most))].copy()


class LateNumber:
    """The value of a one-element tensor, read when it is asked for: a step later, when it has been computed anyway."""

    __slots__ = ("_factor", "_tensor")

    def __init__(self, tensor: Tensor, factor: float = 1.0) -> None:
        self._tensor = tensor
        self._factor = factor

    def __float__(self) -> float:
        # Not through an array: numpy takes ten times as long to make one.
        return float(self._tensor.item()) * self._factor


class LateNorm:
    """The L2 norm over gradients, computed when it is asked for: a step later. The gradients live as long.

    `factor`: what the optimizer multiplies them by before it uses them.
    """

    __slots__ = ("_factor", "_gradients")

    def __init__(self, gradients: list[Tensor], factor: float = 1.0) -> None:
        self._gradients = gradients
        self._factor = factor

    def __float__(self) -> float:
        return norm_of(self._gradients) * self._factor


def norm_of(gradients: list[Tensor]) -> float:
    """The L2 norm over all of them; waits for them."""
    square = 0.0
    arrays = [_floats(gradient).reshape(-1) for gradient in gradients]
    with np.errstate(all="ignore"):
        for values in arrays:
            square += float(values.dot(values))
        if SMALLEST_SQUARE < square < math.inf:
            return math.sqrt(square)
        # Too large or too small for squares in float32, or not finite at all.
        return math.hypot(*[float(np.linalg.norm(values.astype(np.float64))) for values in arrays]) if arrays else 0.0
