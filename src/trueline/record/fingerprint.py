"""One 64-bit hash per sample of a batch, equal when and only when (but for chance) the sample's bytes are equal."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

# Below this many bytes per sample one vectorised product over the batch is quicker than a hash call per sample.
_SHORT_ROW = 2048


def fingerprints(fields: list[NDArray[Any]]) -> NDArray[np.uint64]:
    """The fingerprints of the samples whose parts are the rows of `fields`, all with the same number of rows."""
    size = len(fields[0])
    hashes = np.zeros(size, dtype=np.uint64)
    for values in fields:
        rows = np.ascontiguousarray(values).reshape(size, -1).view(np.uint8)
        if rows.shape[1] <= _SHORT_ROW:
            hashes = _mixed_in(hashes, _short_rows(rows))
        else:
            digest = xxhash.xxh3_64_intdigest
            hashes = _mixed_in(hashes, np.fromiter((digest(row) for row in rows), dtype=np.uint64, count=size))
    return hashes


def _mixed_in(hashes: NDArray[np.uint64], more: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (hashes ^ more) * np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    return mixed


def _short_rows(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    width = rows.shape[1]
    if width % 4:
        rows = np.pad(rows, ((0, 0), (0, 4 - width % 4)))
    words = rows.view(np.uint32).astype(np.uint64)
    words *= _weights(words.shape[1])
    # Products carry upwards only, and floats such as 1 and -1 have nothing but zeros below: without folding the upper half
    # down, a few of the upper bits would have to tell such samples apart.
    words ^= words >> np.uint64(32)
    hashes: NDArray[np.uint64] = words.sum(axis=1, dtype=np.uint64)
    hashes += np.uint64(width)
    hashes ^= hashes >> np.uint64(29)
    return hashes


@lru_cache(maxsize=64)
def _weights(count: int) -> NDArray[np.uint64]:
    generator = np.random.Generator(np.random.PCG64(20240229))
    return generator.integers(0, 1 << 64, size=count, dtype=np.uint64) | np.uint64(1)
