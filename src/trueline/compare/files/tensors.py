"""How far two tensors are apart: one pass over both, block by block, in a few MB of memory."""

from __future__ import annotations

import math
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

# Values at a time: small enough that a block and what is made of it stay in the processor's cache.
BLOCK = 1 << 16
# Squares of numbers that are as small as this are lost in single precision.
_VANISHING = 1e-30


class Values(Protocol):
    """What is needed of a tensor: its values from one place to another, in row-major order."""

    count: int

    def values(self, start: int, stop: int) -> NDArray[Any]: ...


class Difference(msgspec.Struct, frozen=True):
    """How two tensors of the same number of values differ.

    NaN against a number is a difference, and so is an infinity against anything else; NaN in the same place on both sides is
    none. `max_abs`, `relative_l2` (of the difference, by the length of the reference) and `cosine` are taken over the places
    where both are finite. `differing` and `sign_flips` count values. `equal_bits` is said after the narrower type was
    widened. `largest` is the largest finite magnitude of either.
    """

    count: int
    max_abs: float
    relative_l2: float
    cosine: float
    differing: int
    sign_flips: int
    nan: tuple[int, int]
    inf: tuple[int, int]
    nonfinite_differing: int
    equal_bits: bool
    largest: float

    def within(self, tolerance: float) -> bool:
        """Whether nothing but rounding lies between them: relative to their length, and at each value to the largest."""
        if self.nonfinite_differing:
            return False
        return self.relative_l2 <= tolerance and self.max_abs <= tolerance * self.largest


def tolerance_of(units: float, *epsilons: float) -> float:
    """A relative tolerance in units of the rounding of the coarser type; 0 if one of them counts exactly."""
    return units * max(epsilons) if min(epsilons) > 0 else 0.0


class _Sums:
    def __init__(self) -> None:
        self.max_abs = self.largest = 0.0
        self.difference = self.mine = self.reference = self.product = 0.0
        self.differing = self.sign_flips = self.nonfinite_differing = 0
        self.nan, self.inf = [0, 0], [0, 0]
        self.equal_bits = True

    def add_equal(self, one: NDArray[Any]) -> None:
        """A block that is the same on both sides."""
        square = _square(one)
        if not math.isfinite(square):
            self.add(one, one)
            return
        self.mine += square
        self.reference += square
        self.product += square
        self.largest = max(self.largest, float(one.max()), -float(one.min()))

    def add_finite(self, one: NDArray[Any], other: NDArray[Any], apart: NDArray[Any]) -> bool:
        """A block of floats without NaN or infinity; False if that is wrong, or if sums of single precision would vanish."""
        mine, reference = _square(one), _square(other)
        if not (math.isfinite(mine) and math.isfinite(reference)):
            return False
        if min(mine, reference) < _VANISHING and one.itemsize < 8:
            return False
        difference = np.subtract(one, other)
        self.equal_bits = False
        self.max_abs = max(self.max_abs, float(difference.max()), -float(difference.min()))
        self.difference += _square(difference)
        self.mine += mine
        self.reference += reference
        self.product += float(np.dot(one, other))
        self.largest = max(
            self.largest, float(one.max()), -float(one.min()), float(other.max()), -float(other.min())
        )  # fmt: skip
        self.differing += int(np.count_nonzero(difference))
        # The highest bit is the sign's: where it differs, the signs do. Zeros have no sign that counts.
        if apart.min() < 0:
            self.sign_flips += int(np.count_nonzero(np.sign(one) * np.sign(other) < 0))
        return True

    def add(self, one: NDArray[Any], other: NDArray[Any]) -> None:
        """Any block, in double precision and with its NaN and infinities counted."""
        same_bits = one.tobytes() == other.tobytes() if one.dtype == other.dtype else not np.any(one != other)
        self.equal_bits = self.equal_bits and bool(same_bits)
        mine, reference = one.astype(np.float64), other.astype(np.float64)
        both = np.isfinite(mine) & np.isfinite(reference)
        if not both.all():
            for side, block in enumerate((mine, reference)):
                self.nan[side] += int(np.isnan(block).sum())
                self.inf[side] += int(np.isinf(block).sum())
            same = (mine == reference) | (np.isnan(mine) & np.isnan(reference))
            unlike = int(np.count_nonzero(~same & ~both))
            self.nonfinite_differing += unlike
            self.differing += unlike
            mine, reference = mine[both], reference[both]
            one, other = one[both], other[both]
        if not mine.size:
            return
        # Whole numbers beyond 2^53 are not held by a double: equality is asked of the values as they are.
        unequal = one != other
        with np.errstate(over="ignore"):
            difference = np.where(unequal, mine - reference, 0.0)
            self.max_abs = max(self.max_abs, float(np.abs(difference).max()))
            self.difference += float(np.dot(difference, difference))
            self.mine += float(np.dot(mine, mine))
            self.reference += float(np.dot(reference, reference))
            self.product += float(np.dot(mine, reference))
        self.largest = max(self.largest, float(np.abs(mine).max()), float(np.abs(reference).max()))
        self.differing += int(np.count_nonzero(unequal))
        self.sign_flips += int(np.count_nonzero(np.sign(mine) * np.sign(reference) < 0))


def measure(mine: Values, reference: Values) -> Difference:
    """How far two tensors with the same number of values are apart."""
    sums = _Sums()
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, mine.count, BLOCK):
            stop = min(mine.count, start + BLOCK)
            _add_block(sums, mine.values(start, stop), reference.values(start, stop))
    return _difference(mine.count, sums)


def measure_arrays(mine: NDArray[Any], reference: NDArray[Any]) -> Difference:
    """The same for arrays in memory, read in row-major order."""
    sums = _Sums()
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, mine.size, BLOCK):
            _add_block(sums, mine.flat[start : start + BLOCK], reference.flat[start : start + BLOCK])
    return _difference(mine.size, sums)


def _add_block(sums: _Sums, one: NDArray[Any], other: NDArray[Any]) -> None:
    if one.dtype.kind == "c" or other.dtype.kind == "c":
        one, other = _pairs(one), _pairs(other)
    kind = np.result_type(one, other)
    if kind.kind != "f" or one.dtype.kind != "f" or other.dtype.kind != "f":
        sums.add(one, other)
        return
    # Halves are widened, which keeps all of their values apart and lets the sums have room.
    wide = np.dtype(np.float64) if kind.itemsize > 4 else np.dtype(np.float32)
    one, other = one.astype(wide, copy=False), other.astype(wide, copy=False)
    bits = np.int64 if wide.itemsize == 8 else np.int32
    apart = np.bitwise_xor(_whole(one).view(bits), _whole(other).view(bits))
    if not apart.any():
        sums.add_equal(one)
    elif not sums.add_finite(one, other, apart):
        sums.add(one, other)


def _difference(count: int, sums: _Sums) -> Difference:
    length = math.sqrt(sums.reference)
    lengths = math.sqrt(sums.mine) * length
    apart = math.sqrt(sums.difference)
    return Difference(
        count,
        sums.max_abs,
        apart / length if length else (math.inf if apart else 0.0),
        min(1.0, max(-1.0, sums.product / lengths)) if lengths and math.isfinite(lengths) else math.nan,
        sums.differing,
        sums.sign_flips,
        (sums.nan[0], sums.nan[1]),
        (sums.inf[0], sums.inf[1]),
        sums.nonfinite_differing,
        sums.equal_bits,
        sums.largest,
    )


def _square(block: NDArray[Any]) -> float:
    """The sum of squares; in double precision where those of single precision would vanish."""
    found = float(np.dot(block, block))
    if found < _VANISHING and block.itemsize < 8:
        wide = block.astype(np.float64)
        return float(np.dot(wide, wide))
    return found


def _pairs(block: NDArray[Any]) -> NDArray[Any]:
    """Complex numbers as their two parts."""
    wide = block if block.dtype.kind == "c" else block.astype(np.complex128)
    return _whole(wide).view(wide.real.dtype)


def _whole(block: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(block)
