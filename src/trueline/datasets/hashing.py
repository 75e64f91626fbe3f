"""64-bit identities of values and rows, made for whole columns at once.

Two values are taken for the same when their identities are: among n different rows the chance that any two collide is about
n² / 2^65, one in 3,700 for a hundred million rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

Hashes = npt.NDArray[np.uint64]

# Of no value: adds nothing to the identity of a row, so that a key that is left out and one that is null are the same.
NOTHING = np.uint64(0)
_FIRST, _SECOND, _THIRD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_WORD = 8
# Above this length a call per text costs less than the passes over all of them.
_LONG_TEXT = 64
# Whole numbers up to here have a float of their own.
EXACT = float(2**53)


def mix(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64: every bit of a value changes half of the bits of the result."""
    mixed = values + _FIRST
    mixed ^= mixed >> np.uint64(30)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(27)
    mixed *= _THIRD
    mixed ^= mixed >> np.uint64(31)
    return mixed


def seed_of(name: str) -> np.uint64:
    return np.uint64(xxhash.xxh3_64_intdigest(name.encode()))


def of_numbers(values: npt.NDArray[Any]) -> Hashes:
    """Identities of numbers: equal for equal numbers of whatever type, also for 0.0 and -0.0, and for one NaN and another."""
    floats = np.array(values, dtype=np.float64)
    floats[np.isnan(floats)] = np.nan
    floats += 0.0
    hashes = mix(floats.view(np.uint64))
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        # These would share a float with their neighbours.
        large = np.abs(floats) >= EXACT
        if large.any():
            hashes[large] = mix(values[large].astype(np.int64).view(np.uint64))
    return hashes


def of_rows(block: npt.NDArray[Any]) -> Hashes:
    """Identities of the rows of a block of numbers, by their bytes."""
    content = np.ascontiguousarray(block).reshape(len(block), -1)
    return np.fromiter((xxhash.xxh3_64_intdigest(row.data) for row in content), np.uint64, len(content))


def of_texts(offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> Hashes:
    """Identities of texts that lie in `data` one after the other; `data` has at least seven bytes more than `offsets` say."""
    starts = offsets[:-1]
    lengths = offsets[1:] - starts
    hashes = lengths.astype(np.uint64)
    words: Hashes = np.ndarray((len(data) - _WORD + 1,), np.uint64, data.data, 0, (1,))
    long = lengths > _LONG_TEXT
    chosen = np.flatnonzero((lengths > 0) & ~long)
    done = 0
    while len(chosen):
        word = words[starts[chosen] + done]
        left = lengths[chosen] - done
        # What belongs to the next text is cut off the last word.
        surplus = np.clip(_WORD - left, 0, _WORD - 1).astype(np.uint64) * np.uint64(8)
        word = (word << surplus) >> surplus
        hashes[chosen] = mix(hashes[chosen] ^ word)
        done += _WORD
        chosen = chosen[left > _WORD]
    view = data.data
    for place in np.flatnonzero(long).tolist():
        hashes[place] = xxhash.xxh3_64_intdigest(view[offsets[place] : offsets[place + 1]])
    return mix(hashes)


def combine(columns: dict[str, Hashes], rows: int) -> Hashes:
    """Identities of rows, whatever the order of their columns."""
    total = np.zeros(rows, np.uint64)
    for name, hashes in columns.items():
        total += np.where(hashes == NOTHING, NOTHING, mix(hashes ^ seed_of(name)))
    return total
