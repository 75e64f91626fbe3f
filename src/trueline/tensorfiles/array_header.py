"""The start of an array in NumPy's format: its shape, its type, and where its bytes begin."""

from __future__ import annotations

import math
import warnings
from typing import IO, Any

import msgspec
import numpy as np

from trueline import limits
from trueline.errors import Unreadable
from trueline.reading import Bounded
from trueline.tensorfiles.source import count_of


class ArrayHeader(msgspec.Struct, frozen=True):
    """`columns_first`: the first axis is the one whose neighbours lie next to each other."""

    shape: tuple[int, ...]
    columns_first: bool
    dtype: Any
    offset: int

    @property
    def length(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)


def read_array_header(file: IO[bytes], name: str) -> ArrayHeader:
    """Of the array at the place of an open file. Arrays of Python objects are refused: loading them could run code."""
    bounded: Any = Bounded(file, limits.ARRAY_HEADER_BYTES)
    version = np.lib.format.read_magic(bounded)  # type: ignore[no-untyped-call]
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        # Of odd spellings in the header, which python would tell the user of.
        warnings.simplefilter("ignore")
        shape, columns_first, dtype = read(bounded)  # type: ignore[no-untyped-call]
    if dtype.hasobject:
        raise Unreadable(f"{name} holds Python objects, which can run code when they are loaded. Save plain arrays of numbers.")
    count_of(shape)
    return ArrayHeader(tuple(int(length) for length in shape), columns_first and len(shape) > 1, dtype, file.tell())
