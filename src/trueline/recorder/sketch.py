"""A linear sketch of a tensor: 64 numbers that keep lengths and angles.

Element i, in row-major order, is multiplied by a fixed pseudo-random sign and added to bucket i mod 64. The map is linear,
so the L2 distance and the cosine between tensors of two runs can be estimated from their sketches alone; the relative
standard error of a squared length is sqrt(2/64), about 18 %. Signs come from a hash of the position, so that every
framework and every machine uses the same ones.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

BUCKETS = 64
BLOCK = 1 << 20


def _mixed(positions: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 finaliser: a well-mixed 64-bit hash of each position."""
    mixed = positions + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _signs(first: int, count: int) -> NDArray[np.float32]:
    top = _mixed(np.arange(first, first + count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)) >> np.uint64(63)
    return (1.0 - 2.0 * top).astype(np.float32)


@cache
def block_signs() -> NDArray[np.float32]:
    """The signs of the positions within one block of BLOCK elements."""
    return _signs(0, BLOCK)


@cache
def block_sign(block: int) -> float:
    """The sign by which a whole block is multiplied, so that no two blocks share their signs."""
    return 1.0 if block == 0 else float(_signs(BLOCK + block, 1)[0])


def sketch(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sketch of an array; the reference that every adapter's own version must equal."""
    flat = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
    buckets = np.zeros(BUCKETS, dtype=np.float64)
    for block, start in enumerate(range(0, flat.size, BLOCK)):
        part = flat[start : start + BLOCK] * block_signs()[: flat.size - start]
        whole = part.size // BUCKETS * BUCKETS
        sums = part[:whole].reshape(-1, BUCKETS).sum(axis=0, dtype=np.float64)
        sums[: part.size - whole] += part[whole:]
        buckets += block_sign(block) * sums
    return buckets.astype(np.float32)


def distance(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """An estimate of the L2 distance between the tensors behind two sketches."""
    return float(np.linalg.norm(one.astype(np.float64) - other.astype(np.float64)))


def cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """An estimate of the cosine between the tensors behind two sketches; NaN when one of them is zero."""
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(np.dot(one.astype(np.float64), other.astype(np.float64)) / lengths) if lengths else float("nan")
