"""The one writer of a rank's record."""

from __future__ import annotations

from pathlib import Path

from trueline.store.database import fold
from trueline.store.format import FORMAT, database_file, journal_file
from trueline.store.journal import Journal, Rows
from trueline.store.tables import table_widths

# A longer journal is left to the first reader: the script should end when it ends.
_MOST_FOLDED_AT_END = 16 << 20


class Writer:
    """Appends rows table by table. What `commit` was given is in the hands of the operating system when it returns: it
    survives the death of this process (not of the machine: that would cost a disk flush at every step)."""

    def __init__(self, directory: Path, rank: int) -> None:
        self._database = database_file(directory, rank)
        if self._database.exists():
            raise FileExistsError(f"{self._database} is there already. Record into another run directory.")
        self._widths = table_widths()
        self._journal = Journal(journal_file(directory, rank))
        self.commit({"meta": [("format", str(FORMAT))]})

    def commit(self, rows: Rows) -> None:
        """Make rows durable, all of them or none; one whose primary key is there already replaces it."""
        for table, table_rows in rows.items():
            width = self._widths[table]
            for row in table_rows:
                if len(row) != width:
                    raise ValueError(f"A row of {table} has {width} values. Received {len(row)}: {row!r}.")
        self._journal.append(rows)

    def close(self) -> None:
        """Make the database. What goes wrong leaves the journal, which can be read just as well where the disk is too full."""
        try:
            if self._journal.size <= _MOST_FOLDED_AT_END:
                fold(self._journal.path, self._database)
        except Exception:  # noqa: BLE001 - the first reader tries again, and is told; the script is not
            return
        finally:
            self._journal.close()

    def discard(self) -> None:
        """Take back everything: the file goes, and another process may make it."""
        self._journal.path.unlink(missing_ok=True)
        self._journal.close()
