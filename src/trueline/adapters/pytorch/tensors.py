"""Statistics, sketches and digests of torch tensors, in as few passes as torch allows, outside of autograd."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack

from trueline.recorder.sketch import BLOCK, BUCKETS, block_sign, block_signs
from trueline.recorder.sketch import sketch as array_sketch
from trueline.recorder.statistics import CANCELLATION, NOTHING, SMALLEST_SQUARE, Statistics
from trueline.recorder.statistics import row_spread as array_row_spread
from trueline.recorder.statistics import statistics as array_statistics
from trueline.store import StoredTensor

_SMALL_ARRAY = 1 << 13
_WIDE = 1 << 14


def under_transform() -> bool:
    """Whether the call is being compiled or runs inside of a torch.func transform: its tensors have no values of their own."""
    return torch.compiler.is_compiling() or peek_interpreter_stack() is not None


def tensors_in(value: Any, most: int = 16) -> list[Tensor]:
    """The tensors in a nest of tuples, lists, dictionaries and dataclasses, in order."""
    found: list[Tensor] = []
    _gather(value, found, most)
    return found


def _gather(value: Any, found: list[Tensor], most: int) -> None:
    if len(found) >= most:
        return
    if isinstance(value, Tensor):
        if has_shape(value):
            found.append(value)
    elif isinstance(value, tuple | list):
        for part in value:
            _gather(part, found, most)
    elif isinstance(value, Mapping):
        for part in value.values():
            _gather(part, found, most)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            _gather(getattr(value, name, None), found, most)


def has_shape(tensor: Tensor) -> bool:
    """Not so nested tensors of the first kind: to ask for their shape is an error."""
    return not tensor.is_nested or tensor.layout is not torch.strided


def dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has dense values that can be read: not sparse, not on the meta device, not quantized, not freed."""
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_quantized:
        return False
    # Sharded trainings resize storages to nothing between two uses: to read those kills the process.
    try:
        return tensor.data_ptr() != 0 or tensor.numel() == 0 or not (tensor.is_cpu or tensor.is_cuda)
    except RuntimeError:
        # A subclass that holds other tensors: those are read.
        return True


def values_of(tensor: Tensor) -> Tensor:
    """The tensor outside of any graph, with its values in memory: torch leaves conjugating and negating to whoever reads."""
    return tensor.detach().resolve_conj().resolve_neg()


def memory_of(tensor: Tensor) -> NDArray[Any]:
    """The tensor's memory as an array, where numpy knows its format and no gradient is asked of it: a BufferError or RuntimeError
    else. Not by `Tensor.numpy`, after which the storage cannot be resized any more, as sharded trainings do."""
    array: NDArray[Any] = np.from_dlpack(tensor)
    return array


def _dense_float(tensor: Tensor) -> Tensor:
    values = values_of(tensor)
    if values.is_complex():
        values = torch.view_as_real(values)
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def _small_array(tensor: Tensor) -> NDArray[Any] | None:
    """A small tensor on the CPU as an array: there the calls cost more than the arithmetic, and numpy's cost least."""
    if not tensor.is_cpu or tensor.numel() > _SMALL_ARRAY:
        return None
    return memory_of(_dense_float(tensor))


def statistics(tensor: Tensor) -> Statistics:
    """The numbers of a row of `tensor_stat`, over the finite values."""
    array = _small_array(tensor)
    if array is not None:
        return array_statistics(array)
    values = _dense_float(tensor)
    count = values.numel()
    low, high = map(float, torch.aminmax(values))
    nan = inf = 0
    if not (math.isfinite(low) and math.isfinite(high)):
        nan, inf = int(torch.isnan(values).sum()), int(torch.isinf(values).sum())
        values = values[torch.isfinite(values)]
        count = values.numel()
        if count == 0:
            return *NOTHING, nan, inf
        low, high = map(float, torch.aminmax(values))
    mean = float(values.sum()) / count
    length = _length(values, max(abs(low), abs(high)))
    square = length * length / count
    if mean * mean > CANCELLATION * square:
        std = float(values.std(correction=0)) if high > low else 0.0
    else:
        std = math.sqrt(square - mean * mean)
    absolute = abs(mean) if low >= 0 or high <= 0 else float(values.abs().sum()) / count
    zeros = _count_zeros(values) / count if low <= 0 <= high else 0.0
    return low, high, mean, std, length, absolute, zeros, nan, inf


def _count_zeros(values: Tensor) -> int:
    """On the CPU by numpy: torch's count branches on every element, and takes up to forty times as long."""
    if values.is_cpu:
        return int(np.count_nonzero(memory_of(values) == 0))
    return values.numel() - int(torch.count_nonzero(values))


def _length(values: Tensor, largest: float) -> float:
    """The L2 norm: a dot product, which adds more exactly than torch's own norm, or float64 where float32 cannot hold it."""
    flat = values.reshape(-1)
    square = float(torch.dot(flat, flat))
    if largest > 0 and not (SMALLEST_SQUARE < square < math.inf):
        return float(torch.linalg.vector_norm(flat, dtype=torch.float64))
    return math.sqrt(square)


@cache
def _signs() -> Tensor:
    return torch.from_numpy(block_signs().copy())


def sketch(tensor: Tensor) -> bytes:
    """The 64-number sketch of recorder/sketch.py, computed where the tensor lives."""
    array = _small_array(tensor)
    if array is not None:
        return array_sketch(array).tobytes()
    flat = _dense_float(tensor).reshape(-1).float()
    signs = _signs().to(flat.device)
    buckets = None
    for block, start in enumerate(range(0, flat.numel(), BLOCK)):
        part = flat[start : start + BLOCK]
        part = part * signs[: part.numel()]
        missing = -part.numel() % BUCKETS
        if missing:
            part = torch.nn.functional.pad(part, (0, missing))
        # In two stages: sums of at most 64 float32 values per column of a wide matrix, then those in float64. Summing the
        # narrow matrix in float64 at once takes four times as long.
        if part.numel() >= _WIDE * 4 and part.numel() % _WIDE == 0:
            part = part.view(-1, _WIDE).sum(0)
        sums = part.view(-1, BUCKETS).sum(0, dtype=torch.float64)
        if block:
            sums *= block_sign(block)
        buckets = sums if buckets is None else buckets + sums
    if buckets is None:
        return bytes(4 * BUCKETS)
    return bytes(buckets.float().cpu().numpy().tobytes())


def digest(tensor: Tensor) -> str:
    """A hash of the content."""
    raw = values_of(tensor).cpu().contiguous().reshape(-1).view(torch.uint8)
    return str(xxhash.xxh3_64_hexdigest(memory_of(raw).data))


def stored(tensor: Tensor) -> StoredTensor:
    """The tensor whole, as raw bytes."""
    values = values_of(tensor).cpu().clone(memory_format=torch.contiguous_format)
    return StoredTensor(dtype_name(tensor), tuple(tensor.shape), values.reshape(-1).view(torch.uint8).numpy())


def array_of(tensor: Tensor) -> NDArray[Any]:
    """A copy of the values; bfloat16, which numpy lacks, as float32."""
    values = values_of(tensor).cpu()
    array: NDArray[Any] = (values.float() if values.dtype is torch.bfloat16 else values.clone()).numpy()
    return array


@torch.no_grad()
def fill(tensor: Tensor, values: NDArray[Any]) -> None:
    """Put other content into a tensor."""
    tensor.copy_(torch.from_numpy(np.array(values)))


def replace(tensor: Tensor, values: NDArray[Any]) -> None:
    """Let a tensor hold other values, of another size maybe; those that share its memory keep theirs."""
    tensor.data = torch.from_numpy(np.array(values)).to(tensor.device, tensor.dtype)


def row_spread(tensor: Tensor) -> float | None:
    """The largest difference between rows (first axis) within any column: 0 when all rows are equal."""
    array = _small_array(tensor)
    if array is not None:
        return array_row_spread(array) if tensor.dim() >= 2 else None
    if tensor.dim() < 2 or tensor.shape[0] < 2:
        return None
    rows = _dense_float(tensor).reshape(tensor.shape[0], -1)
    # Not aminmax, which is not vectorised along the first axis.
    return float((rows.amax(0) - rows.amin(0)).max())


def any_nonzero(tensor: Tensor) -> bool:
    return bool(int(tensor.count_nonzero()))


def dead_share(tensor: Tensor, role: str, zero_share: float | None) -> float | None:
    """The share of units that are zero throughout: see model.TensorStat."""
    if tensor.dim() < 2 or zero_share is None or role not in {"gradient", "output"}:
        return None
    if role == "gradient":
        axis = 0
    elif zero_share < 0.5:
        return None
    else:
        axis = 2 if tensor.dim() == 3 else 1
    if zero_share * tensor.shape[axis] < 1:
        # There are not enough zeros for a single unit.
        return 0.0
    alive = (tensor.detach() != 0).movedim(axis, 0).reshape(tensor.shape[axis], -1).any(dim=1)
    return 1.0 - float(alive.sum()) / tensor.shape[axis]


def version_of(tensor: Tensor) -> int:
    """Counts the changes in place. Tensors made in inference mode do not count; nobody trains with them."""
    return -1 if tensor.is_inference() else tensor._version


def evenly_drawn(tensor: Tensor, most: int) -> Tensor:
    """A copy of at most so many of its values, from all over it."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, -(-flat.numel() // most))].clone()


def number(tensor: Tensor) -> Any:
    """The value of a one-element tensor: at once on the CPU, else a detached tensor to be read a step later."""
    if tensor.is_cpu:
        return float(tensor.item())
    return tensor.detach().clone()


def norm_of(gradients: list[Tensor]) -> Any:
    """The L2 norm over all of them; None when there are none. Called at every step, so small ones go the quickest way."""
    if not gradients:
        return None
    try:
        square = _square_sum(gradients)
    except (TypeError, BufferError, RuntimeError):
        return _norm_of_any(gradients)
    if SMALLEST_SQUARE < square < math.inf:
        return math.sqrt(square)
    # Too large or too small for squares in float32, or not finite at all.
    with torch.no_grad():
        return math.hypot(*[float(torch.linalg.vector_norm(gradient, dtype=torch.float64)) for gradient in gradients])


def _square_sum(gradients: list[Tensor]) -> float:
    """Raises for tensors that are not dense, not on the CPU, or in a graph. Small ones through numpy, whose calls cost least."""
    square = 0.0
    for gradient in gradients:
        if gradient.numel() <= _SMALL_ARRAY:
            values = memory_of(gradient).ravel()
            if values.dtype.kind != "f":
                raise TypeError
            square += float(values.dot(values))
        elif gradient.is_cpu and not gradient.requires_grad:
            flat = gradient.view(-1)
            square += float(torch.dot(flat, flat))
        else:
            raise TypeError
    return square


@torch.no_grad()
def _norm_of_any(gradients: list[Tensor]) -> Any:
    """Sparse gradients are left out; those on a device are not waited for."""
    dense = [gradient for gradient in gradients if is_plain(gradient)]
    if not dense:
        return None
    norms = [torch.linalg.vector_norm(_dense_float(gradient)).float() for gradient in dense]
    return number(torch.linalg.vector_norm(torch.stack([norm.to(norms[0].device) for norm in norms])))
