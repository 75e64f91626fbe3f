"""The number formats of tensors: how they lie in files, and the numpy type in which their values are handed out.

Names are those of PyTorch without `torch.`: `float32`, `bfloat16`, `float8_e4m3fn`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.errors import TruelineError
from trueline.reading import shortened


class NumberFormat(msgspec.Struct, frozen=True):
    """`raw` is the numpy type of the bytes in the file; `epsilon` the distance from 1 to the next number, 0 for integers."""

    name: str
    raw: str
    epsilon: float = 0.0

    @property
    def size(self) -> int:
        return np.dtype(self.raw).itemsize

    @property
    def value_type(self) -> np.dtype[Any]:
        """The numpy type of the decoded values."""
        return np.dtype("float32") if self.encoded else np.dtype(self.raw)

    @property
    def encoded(self) -> bool:
        """Whether the bytes have to be decoded because numpy does not know the format."""
        return self.name == "bfloat16" or self.name.startswith("float8")

    def decode(self, raw: NDArray[Any]) -> NDArray[Any]:
        """The values of raw numbers; formats that numpy lacks become float32, which holds all of their values."""
        if self.name == "bfloat16":
            return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
        if self.name.startswith("float8"):
            return np.take(_eight_bit_values(self.name), raw)
        return raw


_FORMATS = {
    each.name: each
    for each in (
        NumberFormat("float64", "<f8", 2.0**-52),
        NumberFormat("float32", "<f4", 2.0**-23),
        NumberFormat("float16", "<f2", 2.0**-10),
        NumberFormat("bfloat16", "<u2", 2.0**-7),
        NumberFormat("float8_e4m3fn", "u1", 2.0**-3),
        NumberFormat("float8_e4m3fnuz", "u1", 2.0**-3),
        NumberFormat("float8_e5m2", "u1", 2.0**-2),
        NumberFormat("float8_e5m2fnuz", "u1", 2.0**-2),
        NumberFormat("complex64", "<c8", 2.0**-23),
        NumberFormat("complex128", "<c16", 2.0**-52),
        *(NumberFormat(f"int{bits}", f"<i{bits // 8}") for bits in (8, 16, 32, 64)),
        *(NumberFormat(f"uint{bits}", f"<u{bits // 8}") for bits in (8, 16, 32, 64)),
        NumberFormat("bool", "?"),
    )
}


def number_format(name: str) -> NumberFormat:
    """The format of this name; refuses those whose values cannot be told."""
    found = _FORMATS.get(name)
    if found is None:
        raise TruelineError(f"Tensors of type {shortened(name)} cannot be read. Expected one of {', '.join(_FORMATS)}.")
    return found


def format_of_array(dtype: np.dtype[Any]) -> NumberFormat:
    """The format of a numpy array. MindSpore's and ml_dtypes' bfloat16 lies in files as two bytes without a type."""
    if dtype.kind == "V" and dtype.itemsize == 2 and not dtype.names:
        return _FORMATS["bfloat16"]
    return number_format(dtype.name)


@cache
def _eight_bit_values(name: str) -> NDArray[np.float32]:
    """The 256 values of an eight-bit float: sign, exponent and mantissa as the name tells.

    `fn` has no infinities and one NaN per sign; `fnuz` has neither infinities nor a negative zero, whose code is its NaN.
    """
    mantissa_bits = 3 if "e4m3" in name else 2
    without_zero_sign = name.endswith("fnuz")
    bias = (1 << (6 - mantissa_bits)) - (0 if without_zero_sign else 1)
    codes = np.arange(256)
    exponent = (codes & 0x7F) >> mantissa_bits
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - float(bias)))
    values = np.where(codes & 0x80, -values, values)
    if without_zero_sign:
        values[0x80] = np.nan
    elif name == "float8_e4m3fn":
        values[[0x7F, 0xFF]] = np.nan
    else:
        values[[0x7C, 0xFC]] = np.inf, -np.inf
        values[[0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]] = np.nan
    return values.astype(np.float32)
