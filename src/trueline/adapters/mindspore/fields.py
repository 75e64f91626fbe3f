"""Reading the fields of batches and root calls as arrays, and missing values in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mindspore import Tensor
from numpy.typing import NDArray

from trueline.adapters.mindspore.tensors import array_of, dtype_name
from trueline.adapters.shared.fields import nonfinite_counts


def readable(tensor: Tensor | NDArray[Any]) -> tuple[NDArray[Any], str] | None:
    """The numbers of a field and the name of its dtype; None for what has none."""
    values = array_of(tensor)
    if values.ndim == 0 or values.size == 0 or values.dtype.kind not in "iuf":
        return None
    return values, dtype_name(tensor)


def nonfinite(name: str, array: NDArray[Any]) -> dict[str, Any] | None:
    """How much of a field is NaN or infinite, if anything."""
    if array.dtype.kind != "f":
        return None
    if array.dtype != np.float16:
        # A dot product with itself tells at once that there is nothing.
        flat = array.reshape(-1)
        with np.errstate(all="ignore"):
            square = float(flat.dot(flat))
        if math.isfinite(square):
            return None
    finite = np.isfinite(array)
    return None if finite.all() else nonfinite_counts(name, array, finite)
