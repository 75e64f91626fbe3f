"""Parquet files, read row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trueline.datasets.arrow import flattened, typed_column
from trueline.datasets.columns import Chunk
from trueline.datasets.optional import require
from trueline.datasets.table import Table
from trueline.errors import TruelineError

_ROWS = 32_768
# Wide rows come in fewer at a time, so that a chunk stays at some tens of megabytes.
_VALUES = 1 << 20


def parquet_table(path: Path) -> Table:
    columns_of(path)
    return Table(path.name, lambda: _read(path), [path])


def columns_of(path: Path) -> tuple[str, ...]:
    pa, pq = require("pyarrow", "to read Parquet files"), require("pyarrow.parquet", "to read Parquet files")
    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as problem:
        raise _unreadable(path, problem) from problem


def _read(path: Path) -> Iterator[Chunk]:
    pa, pq = require("pyarrow", "to read Parquet files"), require("pyarrow.parquet", "to read Parquet files")
    try:
        # Pages are read as they come: a row group can be larger than the memory.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            total, rows = file.metadata.num_rows, 0
            if not total:
                raise TruelineError(f"{path} has no rows. Check how it was written.")
            size = max(1024, min(_ROWS, _VALUES // max(1, file.metadata.num_columns)))
            for batch in file.iter_batches(batch_size=size, use_threads=False):
                rows += batch.num_rows
                columns = {name: typed_column(array) for name, array in flattened(batch).items()}
                yield Chunk(
                    {name: column for name, column in columns.items() if column is not None}, batch.num_rows, rows / total
                )
    except (pa.ArrowInvalid, OSError) as problem:
        raise _unreadable(path, problem) from problem


def _unreadable(path: Path, problem: Exception) -> TruelineError:
    return TruelineError(
        f"{path} cannot be read as Parquet ({problem}). It is none, or was cut short: copy it again, or check its name."
    )
