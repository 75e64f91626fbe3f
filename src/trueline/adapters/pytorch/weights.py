"""Weights written as a PyTorch checkpoint."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def write_weights(path: Path, weights: dict[str, tuple[str, NDArray[Any]]]) -> None:
    """Save a state dict. Each weight comes with its number format, and as it lies in files: bfloat16 as uint16, eight-bit
    floats as uint8."""
    torch.save(OrderedDict((name, _tensor(dtype, raw)) for name, (dtype, raw) in weights.items()), path)


def _tensor(dtype: str, raw: NDArray[Any]) -> torch.Tensor:
    # A copy in order: what is mapped cannot be written to, and torch warns of that.
    flat = np.array(raw, order="C")
    tensor = torch.from_numpy(flat.view(np.int16) if dtype == "bfloat16" else flat)
    return tensor.view(getattr(torch, dtype)) if dtype == "bfloat16" or dtype.startswith("float8") else tensor
