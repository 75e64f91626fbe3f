"""Content of single samples, thinned out."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from trueline.adapters.pytorch.tensors import is_plain, memory_of
from trueline.adapters.shared.samples import MOST_VALUES, thinned


def row_of(tensor: Tensor, row: int) -> NDArray[Any] | None:
    """A picture with fewer pixels, or the first values of anything else; half precision and the like as float32."""
    if not is_plain(tensor) or not tensor.is_cpu:
        return None
    with torch._C.DisableTorchFunction(), torch.no_grad():
        values = tensor.detach()[row]
        values = values[thinned(tuple(values.shape))]
        if values.numel() > MOST_VALUES:
            values = values.reshape(-1)[:MOST_VALUES]
        return memory_of(values.float() if values.is_floating_point() else values.to(torch.int64))
