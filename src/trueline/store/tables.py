"""The tables of a rank's record, read as data: a database from elsewhere can hold views, triggers and generated columns, which
are programs, and pages that stand in it many times, which have no end."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from trueline import limits
from trueline.errors import Unreadable
from trueline.reading import shortened
from trueline.store.format import SCHEMA

_ROWS_AT_ONCE = 4096
_INSTRUCTIONS_AT_ONCE = 10_000
_COMMENT = re.compile(r"--[^\n]*")
_FROM = re.compile(r" FROM (\w+)")
_NOTHING = type(None)
_HAS_LENGTH = {str, bytes, _NOTHING}
_Read = TypeVar("_Read")
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "REAL": (float, int), "TEXT": (str,), "BLOB": (bytes,)}
# SQLite would keep NaN as NULL.
_NAN_AS_TEXT = {("step", "loss"), ("step", "grad_norm")}


class _Column(msgspec.Struct, frozen=True):
    kind: str
    types: frozenset[type]


@cache
def table_widths() -> dict[str, int]:
    """How many columns each table has."""
    return {table: len(columns) for table, columns in _columns().items()}


@cache
def column_kinds() -> dict[str, tuple[str, ...]]:
    """`INTEGER`, `REAL`, `TEXT` or `BLOB` of each column of each table."""
    return {table: tuple(column.kind for column in columns.values()) for table, columns in _columns().items()}


@cache
def _columns() -> dict[str, dict[str, _Column]]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    found: dict[str, dict[str, _Column]] = {}
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        found[table] = {}
        for _, name, kind, needed, _, is_key in connection.execute(f"PRAGMA table_info({table})").fetchall():
            types = {*_TYPES[kind]} | ({str} if (table, name) in _NAN_AS_TEXT else set())
            if not needed and not is_key:
                types.add(_NOTHING)
            found[table][name] = _Column(kind, frozenset(types))
    connection.close()
    return found


@cache
def _expected() -> frozenset[tuple[Any, ...]]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    expected = frozenset(_described(connection))
    connection.close()
    return expected


def _described(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT 1000").fetchall()
    return [(*row[:3], None if row[3] is None else " ".join(_COMMENT.sub("", str(row[3])).split())) for row in rows]


def open_database(path: Path) -> sqlite3.Connection:
    """A database that nobody writes any more, with the tables of schema.sql and nothing else."""
    # Immutable: what lies beside it (`-wal`, `-journal`) is not looked at, and nothing is made there.
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limits.DATABASE_VALUE_BYTES, max(1 << 20, path.stat().st_size)))
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        _bounded(connection, lambda: _check_tables(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def _check_tables(connection: sqlite3.Connection) -> None:
    found = set(_described(connection))
    if found != _expected():
        # What is too much rather than what is missing for it, and programs before tables.
        others = found - _expected() or _expected() - found
        kind, name, *_ = min(others, key=lambda row: (row[0] in ("table", "index"), row[0] != "table", str(row)))
        raise Unreadable(f"it does not have the tables of a record: see its {kind} {shortened(str(name))}")
    connection.execute("SELECT key FROM meta LIMIT 1").fetchone()


def rows_of(connection: sqlite3.Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows that a query gives, of the types that the schema says."""
    return _bounded(connection, lambda: _rows(connection, query, values))


def _size(connection: sqlite3.Connection) -> int:
    pages, page_size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages) * int(page_size)


def _bounded(connection: sqlite3.Connection, read: Callable[[], _Read]) -> _Read:
    """What is read costs in proportion to the database: rows are read once and sorted, nothing is computed."""
    most = limits.DATABASE_INSTRUCTIONS + limits.DATABASE_INSTRUCTIONS_PER_BYTE * _size(connection)
    left = most // _INSTRUCTIONS_AT_ONCE

    def is_too_long() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    connection.set_progress_handler(is_too_long, _INSTRUCTIONS_AT_ONCE)
    try:
        return read()
    except sqlite3.OperationalError as problem:
        if left < 0:
            raise Unreadable(f"reading its tables took more than {most:,} steps, far more than its size asks for") from problem
        raise
    finally:
        connection.set_progress_handler(None, 0)


def _rows(connection: sqlite3.Connection, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    size = _size(connection)
    cursor = connection.execute(query, values)
    named = _FROM.search(query)
    columns = _columns()[named[1]] if named is not None else {}
    expected = [columns.get(each[0]) for each in cursor.description]
    found: list[tuple[Any, ...]] = []
    held = 0
    while some := cursor.fetchmany(_ROWS_AT_ONCE):
        for place, column in enumerate(expected):
            types = {type(row[place]) for row in some}
            if column is not None and not types <= column.types:
                some = _with_numbers(some, place) if column.kind == "INTEGER" else some
                if others := {type(row[place]) for row in some} - column.types:
                    names = ", ".join(sorted(kind.__name__ for kind in others))
                    raise Unreadable(f"its column {cursor.description[place][0]} holds {names}")
            if types & {str, bytes} and types <= _HAS_LENGTH:
                held += sum(len(row[place]) for row in some if row[place] is not None)
        found += some
        if held > limits.DATABASE_TIMES * size or len(found) > size:
            raise Unreadable("its tables give more than it holds")
    return found


def _with_numbers(rows: list[tuple[Any, ...]], place: int) -> list[tuple[Any, ...]]:
    """Numbers of more than 64 bits are kept as text."""
    return [
        (*row[:place], int(row[place]), *row[place + 1 :]) if isinstance(row[place], str) and _is_long(row[place]) else row
        for row in rows
    ]


def _is_long(text: str) -> bool:
    return len(text) <= 100 and text.removeprefix("-").isdecimal()
