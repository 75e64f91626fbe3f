"""Content of single samples, thinned out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.adapters.shared.samples import MOST_VALUES, thinned


def row_of(array: NDArray[Any], row: int) -> NDArray[Any] | None:
    """A picture with fewer pixels, or the first values of anything else; half precision and the like as float32."""
    values = array[row]
    values = values[thinned(values.shape)]
    if values.size > MOST_VALUES:
        values = values.reshape(-1)[:MOST_VALUES]
    kept: NDArray[Any] = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
    return kept
