"""A tensor where it lies in a file: mapped, decoded piece by piece."""

from __future__ import annotations

import math
import mmap
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TruelineError
from trueline.reading import open_regular
from trueline.tensorfiles.number_formats import NumberFormat

# What stays mapped in behind the place that is being read.
_KEPT = 1 << 25


class Region:
    """Some bytes of a file, mapped into memory. Pages that have been read can be given back while the map stays."""

    def __init__(self, path: Path, offset: int, length: int) -> None:
        available = path.stat().st_size - offset
        if available < length:
            raise TruelineError(
                f"{path} is cut off: {length:,} bytes are expected from byte {offset:,} on, and {max(0, available):,} are there. "
                "Copy or save it again."
            )
        self._start = offset % mmap.ALLOCATIONGRANULARITY
        self._released = 0
        self._length = length
        self._map: mmap.mmap | None = None
        if length:
            with open_regular(path) as file:
                self._map = mmap.mmap(file.fileno(), length + self._start, access=mmap.ACCESS_READ, offset=offset - self._start)

    def array(self, raw: str) -> NDArray[Any]:
        if self._map is None:
            return np.empty(0, raw)
        return np.frombuffer(self._map, raw, self._length // np.dtype(raw).itemsize, self._start)

    def release(self, place: int) -> None:
        """Give back the pages well before a place: what has been mapped in counts as memory of the process."""
        end = (self._start + place) // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and end - self._released >= _KEPT and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end


class Stored:
    """One tensor in a file: flat pieces that follow each other, or one array with strides of its own."""

    def __init__(
        self,
        shape: tuple[int, ...],
        number_format: NumberFormat,
        pieces: Sequence[Region] = (),
        array: NDArray[Any] | None = None,
    ) -> None:
        self.shape = shape
        self.format = number_format
        self.count = math.prod(shape)
        self._regions = list(pieces)
        self._pieces = [region.array(number_format.raw) for region in pieces] if array is None else [_flat_if_possible(array)]
        self._ends = list(accumulate(piece.size for piece in self._pieces))
        if (self._ends or [0])[-1] != self.count:
            raise TruelineError(f"{(self._ends or [0])[-1]:,} values were found for a tensor of shape {list(shape)}.")

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """The decoded values from one place to another, counted in row-major order. Reading backwards is allowed, and slow."""
        return self.format.decode(self.raw(start, stop))

    def raw(self, start: int, stop: int) -> NDArray[Any]:
        """The same, as they lie in the file."""
        found = []
        place = bisect_right(self._ends, start)
        while start < stop and place < len(self._pieces):
            piece = self._pieces[place]
            first = self._ends[place] - piece.size
            end = min(stop, self._ends[place])
            # `flat` copies a range of a strided array in row-major order.
            found.append(piece[start - first : end - first] if piece.ndim == 1 else piece.flat[start - first : end - first])
            if self._regions:
                self._regions[place].release((start - first) * piece.itemsize)
            start, place = end, place + 1
        if not found:
            return np.empty(0, self.format.raw)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def whole(self) -> NDArray[Any]:
        """All of it, decoded, in its shape; formats that numpy knows are not copied where they lie in one piece."""
        if len(self._pieces) == 1 and self._pieces[0].ndim > 1:
            return self.format.decode(self._pieces[0])
        return self.values(0, self.count).reshape(self.shape)

    def whole_raw(self) -> NDArray[Any]:
        """All of it in its shape, as it lies in the file: bfloat16 as uint16, eight-bit floats as uint8."""
        if len(self._pieces) == 1 and self._pieces[0].ndim > 1:
            return self._pieces[0]
        return self.raw(0, self.count).reshape(self.shape)


def _flat_if_possible(array: NDArray[Any]) -> NDArray[Any]:
    return array.reshape(-1) if array.flags.c_contiguous or array.ndim == 0 else array
