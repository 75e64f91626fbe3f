"""npy and npz files. Arrays of the same length belong together; they are read in blocks of rows, never as a whole."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from trueline.datasets.columns import Chunk, Column, Texts, block_of, numbers_of
from trueline.datasets.table import Table
from trueline.errors import TruelineError

_BYTES = 16 << 20
# Up to so many features each is a field of its own; more are pixels or an embedding, and looked at as one.
_MOST_FEATURES = 256


def numpy_tables(path: Path) -> list[Table]:
    try:
        if path.suffix.lower() == ".npy":
            return arrays_to_tables({path.stem: np.load(path, mmap_mode="r", allow_pickle=False)}, path.name, [path])
        return _npz_tables(path)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as problem:
        if "allow_pickle" in str(problem) or "Object arrays" in str(problem):
            raise TruelineError(
                f"{path} holds Python objects, which can run code when they are loaded. Save plain arrays of numbers or texts."
            ) from problem
        raise TruelineError(f"{path} cannot be read as a NumPy file ({problem}). Copy or save it again.") from problem


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
    if block.dtype.kind in "USO":
        return {name: Texts.of([str(value) if not isinstance(value, bytes) else value for value in block.ravel()[: len(block)]])}
    if block.dtype.kind in "mM":
        return {name: numbers_of(block.astype(np.int64))}
    if block.dtype.kind == "c":
        return {f"{name}.real": numbers_of(block.real.copy()), f"{name}.imag": numbers_of(block.imag.copy())}
    if block.ndim == 1:
        return {name: numbers_of(block)}
    if block.ndim == 2 and block.shape[1] == 1:
        return {name: numbers_of(np.ascontiguousarray(block[:, 0]))}
    if block.ndim == 2 and block.shape[1] <= _MOST_FEATURES:
        return {f"{name}[{place}]": numbers_of(np.ascontiguousarray(block[:, place])) for place in range(block.shape[1])}
    return {name: block_of(block)}


def _grouped(
    shapes: dict[str, tuple[int, ...]], reader: Callable[[list[str], int], Iterator[Chunk]], name: str, files: list[Path]
) -> list[Table]:
    lengths: dict[int, list[str]] = {}
    for each, shape in shapes.items():
        # Scalars and empty arrays are settings, not samples.
        if shape and shape[0] and np.prod(shape):
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
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                shapes[member.removesuffix(".npy")] = _header(file)[0]

    def reader(names: list[str], rows: int) -> Iterator[Chunk]:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(path))
            streams = {each: _rows_of(stack.enter_context(archive.open(f"{each}.npy"))) for each in names}
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


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns come first, and type of the array that follows in the file."""
    version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)  # type: ignore[no-untyped-call]
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    return shape, fortran and len(shape) > 1, dtype


def _rows_of(file: Any) -> Generator[Any, int, None]:
    """A generator that is sent a number of rows and gives the next so many."""
    shape, fortran, dtype = _header(file)
    if fortran:
        # Column by column: there is no reading it by rows.
        whole = np.frombuffer(file.read(), dtype).reshape(shape, order="F")
        place = 0
        block: Any = None
        while True:
            count = yield block
            block = np.ascontiguousarray(whole[place : place + count])
            place += count
    block = None
    row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
    while True:
        count = yield block
        content = file.read(count * row_bytes)
        if len(content) < count * row_bytes:
            raise TruelineError("The NumPy file ends before its arrays do. Copy or save it again.")
        block = np.frombuffer(content, dtype).reshape(count, *shape[1:])


def _npz_step(path: Path, names: list[str]) -> int:
    widest = 1
    with zipfile.ZipFile(path) as archive:
        for each in names:
            with archive.open(f"{each}.npy") as file:
                shape, _, dtype = _header(file)
                widest = max(widest, dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64)))
    return max(1, min(65_536, _BYTES // widest))


def _step(arrays: dict[str, Any]) -> int:
    widest: int = max(array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64)) for array in arrays.values())
    return max(1, min(65_536, _BYTES // max(1, widest)))
