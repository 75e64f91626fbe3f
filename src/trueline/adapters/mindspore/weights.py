"""Weights written as a MindSpore checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from trueline.errors import TruelineError


def write_weights(path: Path, weights: dict[str, tuple[str, NDArray[Any]]]) -> None:
    """Save a checkpoint. Each weight comes with its number format, and as it lies in files: bfloat16 as uint16."""
    saved = [{"name": name, "data": _tensor(name, dtype, raw)} for name, (dtype, raw) in weights.items()]
    # MindSpore puts the ending to the name if it is not there, and takes the right to write away.
    ms.save_checkpoint(saved, str(path))
    path.chmod(0o644)


def _tensor(name: str, dtype: str, raw: NDArray[Any]) -> ms.Tensor:
    if dtype == "bfloat16":
        # Its values are those of float32 with fewer digits, so that nothing is lost on the way back.
        wide = (np.ascontiguousarray(raw).astype(np.uint32) << np.uint32(16)).view(np.float32)
        return ms.Tensor(wide).astype(ms.bfloat16)
    if dtype.startswith("float8"):
        raise TruelineError(
            f"{name} is of type {dtype}, which a MindSpore checkpoint does not hold. Convert it to float16 first."
        )
    return ms.Tensor(np.array(raw, order="C"))
