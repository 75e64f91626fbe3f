"""Which reader a dataset needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trueline.datasets import csv_file, parquet_file
from trueline.datasets.columns import Chunk
from trueline.datasets.image_folder import IMAGE_SUFFIXES, image_table
from trueline.datasets.json_file import json_table
from trueline.datasets.numpy_file import numpy_tables
from trueline.datasets.python_object import python_tables
from trueline.datasets.table import Table, guarded
from trueline.errors import TruelineError
from trueline.reading import check_regular, reading
from trueline.store.manifest import files_under

_CSV = (".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz")
_PARQUET = (".parquet", ".pq")
_JSON = (".jsonl", ".ndjson", ".json")
_NUMPY = (".npz", ".npy")
_KNOWN = "CSV (.csv, .tsv), Parquet, JSON (.jsonl, .json), NumPy (.npz, .npy), a folder of these or of images, or module:name"
_PYTHON_OBJECT = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")


def open_dataset(path: str, *, encoding: str | None = None, limit: int | None = None) -> list[Table]:
    """The tables of a dataset: one as a rule; several for a folder of different files or arrays of different lengths."""
    place = Path(path)
    if not place.exists():
        if _PYTHON_OBJECT.match(path):
            return python_tables(path, limit)
        raise TruelineError(f"There is no file or folder {path!r}. Expected {_KNOWN}.")
    if place.is_dir():
        return _folder_tables(place, encoding)
    tables = _file_tables(place, encoding)
    if tables is None:
        raise TruelineError(f"{place.name} has the ending {place.suffix or '(none)'}, which is not known. Expected {_KNOWN}.")
    return tables


def _file_tables(path: Path, encoding: str | None) -> list[Table] | None:
    with reading(path):
        check_regular(path)
        tables = _tables_of(path, encoding)
    for table in tables or []:
        table.read = guarded(path, table.read)
    return tables


def _tables_of(path: Path, encoding: str | None) -> list[Table] | None:
    name = path.name.lower()
    if name.endswith(_CSV):
        return [csv_file.csv_table(path, encoding)]
    if name.endswith(_PARQUET):
        return [parquet_file.parquet_table(path)]
    if name.endswith(_JSON):
        return [json_table(path)]
    if name.endswith(_NUMPY):
        return numpy_tables(path)
    return None


def _folder_tables(root: Path, encoding: str | None) -> list[Table]:
    files = files_under(root)
    images = [path for path in files if path.suffix.lower() in IMAGE_SUFFIXES]
    others = [path for path in files if path.name.lower().endswith(_CSV + _PARQUET + _JSON + _NUMPY)]
    if len(images) > len(others):
        return [image_table(root.resolve(), [path.resolve() for path in images])]
    if not others:
        seen = ", ".join(sorted({path.suffix or path.name for path in files})[:8])
        raise TruelineError(f"{root} holds no file that can be read ({seen or 'it is empty'}). Expected {_KNOWN}.")
    tables: list[Table] = []
    for parts in _parts(others, encoding).values():
        opened = [table for path in parts for table in _file_tables(path, encoding) or []]
        if len(parts) == 1 or any(path.name.lower().endswith(_NUMPY) for path in parts):
            for table in opened:
                table.name = table.name.replace(parts[0].name, parts[0].relative_to(root).as_posix())
            tables += opened
        else:
            tables.append(_joined(opened, f"{parts[0].relative_to(root).as_posix()} and {len(parts) - 1} more"))
    return tables


def _parts(files: list[Path], encoding: str | None) -> dict[tuple[str, ...], list[Path]]:
    """Files of one folder with the same fields are parts of one table."""
    groups: dict[tuple[str, ...], list[Path]] = {}
    for path in files:
        name = path.name.lower()
        fields: tuple[str, ...] = (str(path),)
        if name.endswith(_CSV):
            with reading(path):
                fields = csv_file.columns_of(path, encoding) or fields
        elif name.endswith(_PARQUET):
            with reading(path):
                fields = parquet_file.columns_of(path)
        elif name.endswith(_JSON):
            fields = ()
        groups.setdefault((str(path.parent), path.suffix.lower(), *fields), []).append(path)
    return groups


def _joined(tables: list[Table], name: str) -> Table:
    joined = Table(name, lambda: iter(()), [path for table in tables for path in table.files])

    def read() -> Iterator[Chunk]:
        joined.notes.clear()
        joined.faults.clear()
        for place, table in enumerate(tables):
            for chunk in table.read():
                done = None if chunk.done is None else (place + chunk.done) / len(tables)
                yield Chunk(chunk.columns, chunk.rows, done)
            joined.notes += table.notes
            joined.faults += [f"{table.name}: {fault}" for fault in table.faults]

    joined.read = read
    return joined
