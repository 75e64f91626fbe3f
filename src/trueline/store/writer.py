"""The one writer of a rank file."""

from __future__ import annotations

import ctypes
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueline.store.format import FORMAT, SCHEMA

Row = Sequence[Any]


class Writer:
    """Appends rows table by table. What is handed to `commit` is in the hands of the operating system when it returns:
    it survives the death of this process (not of the machine: that would cost a disk flush at every step)."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(SCHEMA)
        self._statements = {table: self._insert_statement(table) for table in self._tables()}
        self.commit({"meta": [("format", str(FORMAT))]})

    def _tables(self) -> list[str]:
        rows = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [name for (name,) in rows]

    def _insert_statement(self, table: str) -> str:
        width = len(self._connection.execute(f"PRAGMA table_info({table})").fetchall())
        return f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * width)})"

    def commit(self, rows: dict[str, list[Row]]) -> None:
        """Write all rows in one transaction; a row whose primary key is there already replaces it."""
        self._connection.execute("BEGIN")
        try:
            for table, table_rows in rows.items():
                if table_rows:
                    self._connection.executemany(self._statements[table], table_rows)
            self._connection.execute("COMMIT")
        except BaseException:  # also a value that SQLite cannot hold, or Ctrl-C: the next commit starts afresh
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def abandon(self) -> None:
        """In a forked child: never touch the connection again. Closing it there, even when python exits, would take the
        write-ahead log away from the process that still writes it."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))

    def close(self) -> None:
        self._connection.close()
