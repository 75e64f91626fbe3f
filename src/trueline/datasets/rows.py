"""Rows of Python values as chunks: for JSON and for Python datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
import xxhash

from trueline.datasets.columns import Chunk, Column, Numbers, Texts, block_of, numbers_of

ROWS = 8192
# Rows of pictures are large: a chunk is closed early when it holds this many numbers.
_VALUES = 4 << 20
Row = dict[str, Any]


def chunks_of(rows: Iterable[Row], total: int | None = None) -> Iterator[Chunk]:
    """Chunks with a column for every key; a key that a row lacks is null there."""
    iterator, done = iter(rows), 0
    while batch := _some_of(iterator):
        done += len(batch)
        yield Chunk(columns_of_rows(batch), len(batch), done / total if total else None)


def columns_of_rows(rows: list[Row]) -> dict[str, Column]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: column_of([row.get(name) for row in rows]) for name in names}


def column_of(values: list[Any]) -> Column:
    present = [value for value in values if value is not None]
    if all(_is_number(value) for value in present):
        return numbers_of([None if value is None else float(value) for value in values])
    if all(isinstance(value, str) for value in present):
        return Texts.of(values)
    if all(isinstance(value, bytes | bytearray) for value in present):
        return Texts.of([None if value is None else bytes(value) for value in values], "bytes")
    arrays = [None if value is None else _array_of(value) for value in values]
    if sum(array is not None for array in arrays) == len(present):
        return _arrays(arrays)
    return Texts.of([None if value is None else str(value) for value in values], "nested")


def _some_of(iterator: Iterator[Row]) -> list[Row]:
    first = list(islice(iterator, 1))
    if not first:
        return []
    values = sum(int(np.size(value)) if _array_of(value) is not None else 1 for value in first[0].values())
    return first + list(islice(iterator, max(15, min(ROWS, _VALUES // max(1, values))) - 1))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.bool_) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iufb"
    )


def _array_of(value: Any) -> np.ndarray[Any, Any] | None:
    """The numbers of an array, a list of numbers or a picture."""
    if isinstance(value, str | bytes | dict) or value is None:
        return None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        return None
    return array if array.dtype.kind in "iufb" and array.ndim else None


def _arrays(arrays: list[np.ndarray[Any, Any] | None]) -> Numbers:
    present = [array for array in arrays if array is not None]
    if len(present) == len(arrays) and len({array.shape for array in present}) == 1:
        return block_of(np.stack(present))
    # Of many sizes: the values are looked at together, each row is known by its bytes.
    identity = np.zeros(len(arrays), np.uint64)
    for place, array in enumerate(arrays):
        if array is not None:
            identity[place] = xxhash.xxh3_64_intdigest(repr(array.shape).encode() + array.tobytes())
    values = np.concatenate([array.ravel() for array in present])
    return Numbers(values, identity, missing_rows=len(arrays) - len(present), kind="ragged")
