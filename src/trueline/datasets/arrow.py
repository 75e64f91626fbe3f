"""Arrow arrays as columns: what CSV and Parquet files are read into."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from trueline.datasets import hashing
from trueline.datasets.columns import Column, Numbers, Texts
from trueline.datasets.optional import require

_NUMBER = r"^\s*[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*$"
_WHITE = " \t\r\n\v\f\u00a0"


def typed_column(array: Any) -> Column | None:
    """A column of an array that has a type of its own; None for what has no values to look at (lists of structs …)."""
    pa, pc = require("pyarrow", "to read this file"), require("pyarrow.compute", "to read this file")
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return texts_of(array)
    if any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)):
        return texts_of(array.cast(pa.large_binary()), "bytes")
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        moments = array.cast(width).cast(pa.int64()) if not pa.types.is_interval(kind) else None
        return None if moments is None else _numbers(moments, "time")
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind) or pa.types.is_float16(kind):
        return _numbers(pc.cast(array, pa.float64(), safe=False))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _numbers(array)
    if pa.types.is_fixed_size_list(kind) and (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        return _blocks(array, kind.list_size)
    return texts_of(
        pa.array([None if value is None else repr(value) for value in array.to_pylist()], pa.large_string()), "nested"
    )


def flattened(batch: Any) -> dict[str, Any]:
    """The arrays of a batch by name, with the members of structs as fields of their own: `image.bytes`, `image.path`."""
    found: dict[str, Any] = {}
    waiting = list(zip(batch.schema.names, batch.columns, strict=True))
    while waiting:
        name, array = waiting.pop(0)
        if hasattr(array.type, "storage_type"):
            array = array.storage
        if str(array.type).startswith("struct<") and array.type.num_fields:
            members = [array.type.field(place).name for place in range(array.type.num_fields)]
            waiting = [(f"{name}.{member}", part) for member, part in zip(members, array.flatten(), strict=True)] + waiting
        else:
            found[name] = array
    return found


def texts_of(array: Any, kind: str = "text") -> Texts:
    pa = require("pyarrow", "to read this file")
    if str(array.type) not in ("large_string", "large_binary"):
        array = array.cast(pa.large_binary() if kind == "bytes" else pa.large_string())
    rows = len(array)
    _, offsets_buffer, data_buffer = array.buffers()
    if not rows or offsets_buffer is None:
        return Texts.of([None] * rows, kind)
    offsets = np.frombuffer(offsets_buffer, np.int64)[array.offset : array.offset + rows + 1]
    start, stop = int(offsets[0]), int(offsets[-1])
    data = np.zeros(stop - start + 8, np.uint8)
    if data_buffer is not None:
        data[: stop - start] = np.frombuffer(data_buffer, np.uint8)[start:stop]
    return Texts(offsets - start, data, _nulls(array), kind)


def parsed_numbers(array: Any) -> tuple[Numbers, int]:
    """Numbers from an array of texts, and how many of the texts were numbers."""
    pa, pc = require("pyarrow", "to read this file"), require("pyarrow.compute", "to read this file")
    empty = pc.equal(array, "")
    empties = int(pc.sum(empty).as_py() or 0)
    content = pc.if_else(empty, pa.scalar(None, array.type), array) if empties else array
    words: dict[str, int] = {}
    blanks = 0
    try:
        parsed = pc.cast(content, pa.float64())
    except pa.ArrowInvalid:
        is_number = pc.fill_null(pc.match_substring_regex(content, _NUMBER), fill_value=True)
        others = content.filter(pc.invert(is_number))
        content = pc.if_else(is_number, pc.utf8_trim(content, characters=_WHITE), pa.scalar(None, array.type))
        parsed = pc.cast(content, pa.float64())
        for count in pc.value_counts(pc.utf8_trim(others, characters=_WHITE)).to_pylist():
            words[count["values"]] = count["counts"]
        blanks = words.pop("", 0)
    values = parsed.to_numpy(zero_copy_only=False)
    identity = hashing.of_numbers(values)
    absent = _nulls(parsed)
    identity[absent] = hashing.NOTHING
    exceptions = (absent & ~np.asarray(empty)) | (np.abs(values) >= hashing.EXACT)
    if exceptions.any():
        # Words, and numbers with more digits than a float holds, are told apart by how they are written.
        identity[exceptions] = texts_of(array.filter(pa.array(exceptions))).identity
    numbers = Numbers(values, identity, empty=empties, blank=blanks, words=words)
    return numbers, len(array) - numbers.absent


def _numbers(array: Any, kind: str = "number") -> Numbers:
    absent = _nulls(array)
    nulls = int(absent.sum())
    if not nulls:
        values = array.to_numpy(zero_copy_only=False)
        return Numbers(values, hashing.of_numbers(values), kind=kind)
    identity = hashing.of_numbers(array.fill_null(0).to_numpy(zero_copy_only=False))
    identity[absent] = hashing.NOTHING
    # With nulls, integers come as floats with NaN in their place.
    return Numbers(array.to_numpy(zero_copy_only=False), identity, null=nulls, kind=kind)


def _blocks(array: Any, size: int) -> Numbers:
    absent = _nulls(array)
    filled = np.full((len(array), size), np.nan)
    filled[~absent] = array.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
    identity = hashing.of_rows(filled)
    identity[absent] = hashing.NOTHING
    return Numbers(filled, identity, null=int(absent.sum()) * size, kind="array")


def _nulls(array: Any) -> npt.NDArray[np.bool_]:
    if not array.null_count:
        return np.zeros(len(array), bool)
    return np.asarray(array.is_null())
