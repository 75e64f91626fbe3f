"""npy and npz files. Arrays of the same length belong together; they are read in blocks of rows, never as a whole."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from trueline import limits
from trueline.datasets.columns import Chunk, Column, Texts, block_of, numbers_of
from trueline.datasets.table import Table
from trueline.errors import TruelineError, Unreadable
from trueline.reading import open_regular, shortened
from trueline.tensorfiles.array_header import ArrayHeader, read_array_header
from trueline.tensorfiles.zip_members import open_member, open_zip

_BYTES = 16 << 20
# Up to so many features each is a field of its own; more are pixels or an embedding, and looked at as one.
_MOST_FEATURES = 256


def numpy_tables(path: Path) -> list[Table]:
    return arrays_to_tables({path.stem: _mapped(path)}, path.name, [path]) if path.suffix.lower() == ".npy" else _npz_tables(path)


def _mapped(path: Path) -> np.ndarray[Any, Any]:
    with open_regular(path) as file:
        header = _header(file, str(path))
        return np.memmap(file, header.dtype, "r", header.offset, header.shape, "F" if header.columns_first else "C")


def arrays_to_tables(arrays: dict[str, Any], name: str, files: list[Path]) -> list[Table]:
    """A table for each length among the arrays."""

    def reader(names: list[str], rows: int) -> Iterator[Chunk]:
        step = _step({each: arrays[each] for each in names})
        for start in range(0, rows, step):
            columns: dict[str, Column] = {}
            for each in names:
                columns |= columns_of_array(each, np.asarray(arrays[each][start : start + step]))
            stop = min(rows, start + step)
            yield Chunk(columns, stop - start, stop / rows)

    return _grouped({each: array.shape for each, array in arrays.items()}, reader, name, files)


def columns_of_array(name: str, block: Any) -> dict[str, Column]:
    """The fields of some rows of an array: its columns if they are few, itself otherwise."""
    if block.dtype.names:
        found: dict[str, Column] = {}
        for member in block.dtype.names:
            found |= columns_of_array(member, block[member])
        return found
    if block.dtype.kind in "mM":
        return columns_of_array(name, _numbers_of_times(block))
    if block.dtype.kind == "c":
        return columns_of_array(f"{name}.real", block.real) | columns_of_array(f"{name}.imag", block.imag)
    if block.ndim == 2 and block.shape[1] <= _MOST_FEATURES:
        found = {}
        for place in range(block.shape[1]):
            column = name if block.shape[1] == 1 else f"{name}[{place}]"
            found |= columns_of_array(column, np.ascontiguousarray(block[:, place]))
        return found
    if block.dtype.kind in "USO":
        return {name: Texts.of([str(value) if not isinstance(value, bytes) else value for value in block.ravel()[: len(block)]])}
    if block.ndim == 1:
        return {name: numbers_of(np.ascontiguousarray(block))}
    return {name: block_of(block)}


def _numbers_of_times(block: Any) -> npt.NDArray[Any]:
    numbers = block.astype(np.int64)
    absent = np.isnat(block)
    return np.where(absent, np.nan, numbers) if absent.any() else numbers


def _grouped(
    shapes: dict[str, tuple[int, ...]], reader: Callable[[list[str], int], Iterator[Chunk]], name: str, files: list[Path]
) -> list[Table]:
    lengths: dict[int, list[str]] = {}
    for each, shape in shapes.items():
        # Scalars and empty arrays are settings, not samples.
        if math.prod(shape) and shape:
            lengths.setdefault(shape[0], []).append(each)
    if not lengths:
        raise TruelineError(f"{name} holds no array with rows. Received the shapes {shapes}.")
    alone = len(lengths) == 1
    return [
        Table(name if alone else f"{name}: {', '.join(names)}", lambda names=names, rows=rows: reader(names, rows), files)  # type: ignore[misc]
        for rows, names in lengths.items()
    ]


def _npz_tables(path: Path) -> list[Table]:
    shapes: dict[str, tuple[int, ...]] = {}
    with open_zip(path) as archive:
        members = archive.infolist()
        size, most = sum(member.file_size for member in members), path.stat().st_size
        most = max(limits.STREAMED_BYTES, limits.STREAMED_TIMES * most)
        if size > most:
            raise Unreadable(f"its arrays would unpack to {size:,} bytes, and no more than {most:,} are read")
        for member in members:
            with open_member(archive, member) as file:
                header = _header(file, f"{path}: {shortened(member.filename)}")
            # What lies column by column has to be held as a whole.
            held = header.length if header.columns_first else _row_bytes(header)
            if held > max(limits.UNPACKED_BYTES, limits.UNPACKED_TIMES * member.compress_size):
                raise Unreadable(f"{shortened(member.filename)} would take {held:,} bytes of memory at once")
            shapes[member.filename.removesuffix(".npy")] = header.shape

    def reader(names: list[str], rows: int) -> Iterator[Chunk]:
        with ExitStack() as stack:
            archive = stack.enter_context(open_zip(path))
            streams = {each: _rows_of(stack.enter_context(archive.open(_member(archive, each)))) for each in names}
            step = _npz_step(path, names)
            for stream in streams.values():
                next(stream)
            for start in range(0, rows, step):
                count = min(step, rows - start)
                columns: dict[str, Column] = {}
                for each, stream in streams.items():
                    columns |= columns_of_array(each, stream.send(count))
                yield Chunk(columns, count, (start + count) / rows)

    return _grouped(shapes, reader, path.name, [path])


def _header(file: IO[bytes], name: str) -> ArrayHeader:
    header = read_array_header(file, name)
    # Any number of them takes no room at all.
    if header.dtype.itemsize == 0:
        raise Unreadable(f"{name} holds values of no bytes")
    return header


def _member(archive: zipfile.ZipFile, name: str) -> str:
    return name if name in archive.NameToInfo else f"{name}.npy"


def _row_bytes(header: ArrayHeader) -> int:
    return int(header.dtype.itemsize) * math.prod(header.shape[1:])


def _rows_of(file: Any) -> Generator[Any, int, None]:
    """A generator that is sent a number of rows and gives the next so many."""
    header = _header(file, "The NumPy file")
    shape, dtype = header.shape, header.dtype
    if header.columns_first:
        # Column by column: there is no reading it by rows.
        whole = np.frombuffer(file.read(header.length), dtype).reshape(shape, order="F")
        place = 0
        block: Any = None
        while True:
            count = yield block
            block = np.ascontiguousarray(whole[place : place + count])
            place += count
    block = None
    row_bytes = _row_bytes(header)
    while True:
        count = yield block
        content = file.read(count * row_bytes)
        if len(content) < count * row_bytes:
            raise TruelineError("The NumPy file ends before its arrays do. Copy or save it again.")
        block = np.frombuffer(content, dtype).reshape(count, *shape[1:])


def _npz_step(path: Path, names: list[str]) -> int:
    widest = 1
    with open_zip(path) as archive:
        for each in names:
            with archive.open(_member(archive, each)) as file:
                widest = max(widest, _row_bytes(_header(file, each)))
    return max(1, min(65_536, _BYTES // widest))


def _step(arrays: dict[str, Any]) -> int:
    widest: int = max(array.dtype.itemsize * math.prod(array.shape[1:]) for array in arrays.values())
    return max(1, min(65_536, _BYTES // max(1, widest)))
