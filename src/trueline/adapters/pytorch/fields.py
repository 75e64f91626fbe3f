"""Reading the tensors of batches and root calls as arrays, and missing values in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueline.adapters.pytorch.tensors import dtype_name, is_plain, memory_of, values_of
from trueline.adapters.shared.fields import nonfinite_counts

_SMALL_ARRAY = 1 << 13


def readable(tensor: Tensor) -> tuple[NDArray[Any], str] | None:
    """The numbers of a tensor and the name of its dtype; None for what has none, or has them on a device."""
    if not is_plain(tensor) or not tensor.is_cpu or tensor.dim() == 0 or tensor.numel() == 0:
        return None
    if tensor.is_complex() or tensor.dtype is torch.bool:
        return None
    with torch._C.DisableTorchFunction():
        values = values_of(tensor)
        known_to_numpy = not values.is_floating_point() or is_readable_float(values)
        return memory_of(values if known_to_numpy else values.float()), dtype_name(tensor)


def is_readable_float(tensor: Tensor) -> bool:
    """Whether numpy can read it as floating-point numbers."""
    return tensor.is_cpu and is_plain(tensor) and tensor.dtype in {torch.float32, torch.float64, torch.float16}


def nonfinite(name: str, tensor: Tensor, array: NDArray[Any]) -> dict[str, Any] | None:
    """How much of a field is NaN or infinite, if anything; `array` are its values if its dtype says so."""
    if array.dtype.kind != "f":
        array = memory_of(values_of(tensor))
    flat = array.reshape(-1)
    if array.dtype != np.float16:
        # A dot product with itself tells at once that there is nothing; of much data torch's is quicker.
        values: Any = flat if flat.size <= _SMALL_ARRAY else values_of(tensor).reshape(-1)
        square = float(values.dot(values))
        if square - square == 0.0:
            return None
    finite = np.isfinite(array)
    return None if finite.all() else nonfinite_counts(name, array, finite)
