"""Statistics, sketches and digests of torch tensors, in as few passes as torch allows, outside of autograd."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
import xxhash
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack

from trueline.record.sketch import BLOCK, BUCKETS, block_sign, block_signs
from trueline.store import StoredTensor

# min, max, mean, std, L2, mean of absolutes, share of zeros, NaN count, Inf count.
Number = float | None
Statistics = tuple[Number, Number, Number, Number, Number, Number, Number, int, int]
# Above this share of the mean square in the square of the mean, the quick formula for the variance loses too many digits.
_CANCELLATION = 0.99
# Below this, squares of float32 values were rounded to denormal numbers or to zero.
_SMALLEST_SQUARE = 1e-30


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


def dtype_name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has dense values that can be read: not sparse, not on the meta device, not quantized."""
    return tensor.layout is torch.strided and not tensor.is_meta and not tensor.is_quantized


def _dense_float(tensor: Tensor) -> Tensor:
    values = tensor.detach()
    if values.is_complex():
        values = torch.view_as_real(values)
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def statistics(tensor: Tensor) -> Statistics:
    """The numbers of a row of `tensor_stat`, over the finite values."""
    values = _dense_float(tensor)
    count = values.numel()
    if count == 0:
        return None, None, None, None, None, None, None, 0, 0
    low, high = map(float, torch.aminmax(values))
    nan = inf = 0
    if not (math.isfinite(low) and math.isfinite(high)):
        nan = int(torch.isnan(values).sum())
        inf = int(torch.isinf(values).sum())
        values = values[torch.isfinite(values)]
        count = values.numel()
        if count == 0:
            return None, None, None, None, None, None, None, nan, inf
        low, high = map(float, torch.aminmax(values))
    mean = float(values.sum(dtype=torch.float64)) / count if count < BUCKETS else float(values.sum()) / count
    l2 = _length(values, max(abs(low), abs(high)))
    square = l2 * l2 / count
    if mean * mean > _CANCELLATION * square:
        std = float(values.std(correction=0)) if high > low else 0.0
    else:
        std = math.sqrt(square - mean * mean)
    absolute = abs(mean) if low >= 0 or high <= 0 else float(values.abs().sum()) / count
    zeros = 1.0 - int(torch.count_nonzero(values)) / count if low <= 0 <= high else 0.0
    return low, high, mean, std, l2, absolute, zeros, nan, inf


def _length(values: Tensor, largest: float) -> float:
    """The L2 norm: a dot product, which adds more exactly than torch's own norm, or float64 where float32 cannot hold it."""
    flat = values.reshape(-1)
    square = float(torch.dot(flat, flat))
    if largest > 0 and not (_SMALLEST_SQUARE < square < math.inf):
        return float(torch.linalg.vector_norm(flat, dtype=torch.float64))
    return math.sqrt(square)


@cache
def _signs() -> Tensor:
    return torch.from_numpy(block_signs().copy())


def sketch(tensor: Tensor) -> bytes:
    """The 64-number sketch of record/sketch.py, computed where the tensor lives."""
    flat = _dense_float(tensor).reshape(-1).float()
    signs = _signs().to(flat.device)
    buckets = torch.zeros(BUCKETS, dtype=torch.float64, device=flat.device)
    for block, start in enumerate(range(0, flat.numel(), BLOCK)):
        part = flat[start : start + BLOCK]
        part = part * signs[: part.numel()]
        whole = part.numel() // BUCKETS * BUCKETS
        sums = part[:whole].view(-1, BUCKETS).sum(0, dtype=torch.float64)
        sums[: part.numel() - whole] += part[whole:]
        buckets += block_sign(block) * sums
    return bytes(buckets.float().cpu().numpy().tobytes())


def digest(tensor: Tensor) -> str:
    """A hash of the content."""
    raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return str(xxhash.xxh3_64_hexdigest(raw.numpy().data))


def stored(tensor: Tensor) -> StoredTensor:
    """The tensor whole, as raw bytes."""
    values = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    return StoredTensor(dtype_name(tensor), tuple(tensor.shape), values.reshape(-1).view(torch.uint8).numpy())


def row_spread(tensor: Tensor) -> float | None:
    """The largest difference between rows (first axis) within any column: 0 when all rows are equal."""
    if tensor.dim() < 2 or tensor.shape[0] < 2 or tensor.numel() == 0:
        return None
    rows = _dense_float(tensor).reshape(tensor.shape[0], -1)
    low, high = torch.aminmax(rows, dim=0)
    return float((high - low).max())


def number(tensor: Tensor) -> Any:
    """The value of a one-element tensor: at once on the CPU, else a detached tensor to be read a step later."""
    if tensor.device.type == "cpu":
        return float(tensor.detach())
    return tensor.detach().clone()


def norm_of(gradients: list[Tensor]) -> Any:
    """The L2 norm over all of them, with few kernel calls; None when there are none."""
    dense = [gradient for gradient in gradients if is_plain(gradient)]
    if not dense:
        return None
    norms = list(torch._foreach_norm(dense))
    if any(norm.dtype is not norms[0].dtype or norm.device != norms[0].device for norm in norms):
        norms = [norm.to(norms[0].device, torch.float32) for norm in norms]
    return number(torch.linalg.vector_norm(torch.stack(norms)))
