"""The record of a rank once it is made: `rank<N>.sqlite`, folded from its journal."""

from __future__ import annotations

import os
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

from trueline.errors import RunNotFound
from trueline.store.format import SCHEMA, database_file, journal_file
from trueline.store.journal import Rows, held, read_frames

_ROWS_PER_TRANSACTION = 20_000


def open_rank(directory: Path, rank: int, *, finished: bool) -> sqlite3.Connection:
    """Open the record of one rank for reading.

    A journal that a finished or killed run left is folded first. While it is still written (which the run's state does not
    tell for every rank and from every machine), and where the directory cannot be written, it is read into a database in
    memory instead.
    """
    database, journal = database_file(directory, rank), journal_file(directory, rank)
    try:
        if not database.is_file() and not (finished and _folded(journal, database)):
            try:
                return _read_into_memory(journal)
            except FileNotFoundError:
                if not database.is_file():
                    raise
        # It was there from the start, or has just come in the place of the journal.
        # Nobody writes to it any more: without locks, SQLite puts no files of its own beside it, wherever a link leads.
        connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        connection.execute("SELECT count(*) FROM meta").fetchone()
    except (sqlite3.Error, OSError, OverflowError) as problem:
        raise RunNotFound(f"{database} cannot be read ({problem}). Record the run again.") from problem
    return connection


def _folded(journal: Path, database: Path) -> bool:
    """Fold the journal unless somebody writes or folds it; tells whether the database is there."""
    try:
        with held(journal) as free:
            if free and not database.is_file():
                fold(journal, database)
    except (OSError, sqlite3.OperationalError):
        return False
    return database.is_file()


def last_step(directory: Path) -> tuple[int, float | None] | None:
    """How many steps the run's first rank has recorded, and the loss of the last; None when there are none."""
    try:
        connection = open_rank(directory, 0, finished=False)
    except RunNotFound:
        return None
    try:
        row = connection.execute("SELECT id, loss FROM step ORDER BY id DESC LIMIT 1").fetchone()
    finally:
        connection.close()
    return None if row is None else (row[0] + 1, None if row[1] is None else float(row[1]))


def fold(journal: Path, database: Path) -> None:
    """Make the database of a journal. It appears under its name when it is complete, and then the journal goes."""
    partial = database.with_name(f"{database.name}.{os.getpid()}")
    # Process numbers come again: this one may be of somebody who was killed in here.
    partial.unlink(missing_ok=True)
    try:
        connection = _connect_to_fill(str(partial))
        try:
            _fill(connection, journal)
        finally:
            connection.close()
        partial.replace(database)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    journal.unlink()


def _read_into_memory(journal: Path) -> sqlite3.Connection:
    connection = _connect_to_fill(":memory:")
    _fill(connection, journal)
    return connection


def _connect_to_fill(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, isolation_level=None)
    # The file is worth nothing before it is complete: no journal of its own, no flushes.
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.executescript(SCHEMA)
    return connection


def _fill(connection: sqlite3.Connection, journal: Path) -> None:
    waiting: Rows = {}
    count = place = 0
    for place, rows in read_frames(journal):  # noqa: B007 - the last one tells whether there was any
        for table, table_rows in rows.items():
            waiting.setdefault(table, []).extend(table_rows)
            count += len(table_rows)
        if count >= _ROWS_PER_TRANSACTION:
            _insert(connection, waiting)
            waiting, count = {}, 0
    if not place:
        raise RunNotFound(f"{journal} cannot be read (it does not start with a whole frame). Record the run again.")
    _insert(connection, waiting)


@cache
def table_widths() -> dict[str, int]:
    """How many columns each table has."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    widths = {table: len(connection.execute(f"PRAGMA table_info({table})").fetchall()) for table in tables}
    connection.close()
    return widths


def _storable(value: Any) -> Any:
    """What SQLite cannot hold is kept as text: one odd value must not cost the run."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    return value if value is None or isinstance(value, int | float | str | bytes) else str(value)


def _insert(connection: sqlite3.Connection, rows: Rows) -> None:
    """Write rows; one whose primary key is there already replaces it."""
    connection.execute("BEGIN")
    for table, table_rows in rows.items():
        places = ", ".join("?" * table_widths()[table])
        # The names are those of our own schema.
        statement = f"INSERT OR REPLACE INTO {table} VALUES ({places})"  # noqa: S608
        try:
            connection.executemany(statement, table_rows)
        except (OverflowError, sqlite3.Error):
            connection.executemany(statement, [[_storable(value) for value in row] for row in table_rows])
    connection.execute("COMMIT")
