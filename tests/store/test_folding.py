"""From the journal to the database: at the end, all at once, and never at the price of the record."""

from __future__ import annotations

import math
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import largest_file, run_info

from trueline.errors import RunNotFound
from trueline.store import Run, Writer, write_info
from trueline.store import writer as writer_module
from trueline.store.database import fold, open_rank

FOLDED_AT_THE_END = """
import os, signal, sys
from pathlib import Path
from trueline.store import Writer, database

directory = Path(sys.argv[1])
writer = Writer(directory, 0)
for step in range(5):
    writer.commit({"step": [(step, step, 1, 1.0, 1.0, 1, 0.1, 0.0, 1, 1, None, None, None)]})
insert = database._insert

def killed_within(connection, rows):
    insert(connection, rows)
    os.kill(os.getpid(), signal.SIGKILL)

database._insert = killed_within
writer.close()
"""


def step_row(number: int, loss: Any = 1.0) -> tuple[Any, ...]:
    return (number, number, 1, loss, loss, 1, 0.1, 0.0, 1, 1, None, None, None)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_info(tmp_path, run_info("run"))
    return tmp_path


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "run.json")


def losses(directory: Path) -> list[float | None]:
    run = Run(directory)
    try:
        return [step.loss for step in run.steps]
    finally:
        run.close()


def written(directory: Path, steps: int = 3) -> Writer:
    writer = Writer(directory, 0)
    for number in range(steps):
        writer.commit({"step": [step_row(number)]})
    return writer


def test_the_database_takes_the_place_of_the_journal_at_the_end(directory: Path) -> None:
    writer = written(directory)
    assert files(directory) == ["rank0.journal"]
    assert losses(directory) == [1.0] * 3
    assert files(directory) == ["rank0.journal"]
    writer.close()
    assert files(directory) == ["rank0.sqlite"]
    assert losses(directory) == [1.0] * 3


def test_a_journal_over_the_limit_is_left_to_the_first_reader(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_MOST_FOLDED_AT_END", 100)
    written(directory).close()
    assert files(directory) == ["rank0.journal"]
    assert losses(directory) == [1.0] * 3
    assert files(directory) == ["rank0.sqlite"]


def test_more_rows_than_a_transaction_takes(directory: Path) -> None:
    writer = Writer(directory, 0)
    for start in range(0, 50_000, 5_000):
        writer.commit({"step": [step_row(number, float(number)) for number in range(start, start + 5_000)]})
    writer.commit({"step": [step_row(0, -1.0)]})
    writer.close()
    assert losses(directory) == [-1.0, *map(float, range(1, 50_000))]


@pytest.mark.parametrize("loss", [math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 0.1, "nan", None])
def test_live_and_folded_are_the_same_to_the_bit(directory: Path, loss: Any) -> None:
    writer = Writer(directory, 0)
    writer.commit({"step": [step_row(0, loss)]})
    live = losses(directory)
    writer.close()
    assert files(directory) == ["rank0.sqlite"]
    assert repr(live) == repr(losses(directory)) == repr([loss if loss is None else float(loss)])


@pytest.mark.parametrize("room", [0, 1000, 20_000, 100_000])
def test_a_disk_too_full_for_the_database(directory: Path, room: int) -> None:
    """The journal stays, and is read all the same: into memory as long as there is no room, into a database after that."""
    writer = written(directory, 3000)
    with largest_file(room):
        writer.close()
        assert files(directory) == ["rank0.journal"]
        assert losses(directory) == [1.0] * 3000
        assert files(directory) == ["rank0.journal"]
    assert losses(directory) == [1.0] * 3000
    assert files(directory) == ["rank0.sqlite"]


def test_a_full_disk_while_recording_and_after(directory: Path) -> None:
    writer = written(directory, 3)
    journal = directory / "rank0.journal"
    size = journal.stat().st_size
    with largest_file(size + 20):
        with pytest.raises(OSError, match="disk is probably full"):
            writer.commit({"step": [step_row(3)]})
        writer.close()
        assert journal.stat().st_size == size
        assert losses(directory) == [1.0] * 3
    assert losses(directory) == [1.0] * 3


def test_killed_while_folding(directory: Path) -> None:
    """What was half made is not taken for the record, and its name can come again: process numbers do."""
    process = subprocess.run([sys.executable, "-c", FOLDED_AT_THE_END, str(directory)], capture_output=True, check=False)
    assert process.returncode < 0, process.stderr
    (partial,) = directory.glob("rank0.sqlite.*")
    partial.rename(directory / f"rank0.sqlite.{os.getpid()}")
    assert losses(directory) == [1.0] * 5
    assert files(directory) == ["rank0.sqlite"]


def test_a_fold_that_fails_leaves_the_older_database_and_the_journal(directory: Path) -> None:
    written(directory).close()
    before = (directory / "rank0.sqlite").read_bytes()
    (directory / "rank0.journal").write_bytes(b"garbage")
    with pytest.raises(RunNotFound):
        fold(directory / "rank0.journal", directory / "rank0.sqlite")
    assert (directory / "rank0.sqlite").read_bytes() == before
    assert files(directory) == ["rank0.journal", "rank0.sqlite"]


def test_a_value_that_a_database_cannot_hold(directory: Path) -> None:
    """MessagePack takes 64 bits without a sign, SQLite does not: told to the reader, not to the script."""
    writer = written(directory)
    writer.commit({"optimizer": [(2**64 - 1, "SGD", None)]})
    writer.close()
    assert files(directory) == ["rank0.journal"]
    with pytest.raises(RunNotFound, match="cannot be read"):
        losses(directory)
    assert files(directory) == ["rank0.journal"]


def test_nobody_writes_over_a_record(directory: Path) -> None:
    """A launch may start a rank again, in the same directory."""
    writer = written(directory)
    with pytest.raises(FileExistsError):
        Writer(directory, 0)
    writer.close()
    with pytest.raises(FileExistsError, match=r"rank0\.sqlite is there already"):
        Writer(directory, 0)
    assert files(directory) == ["rank0.sqlite"]
    assert losses(directory) == [1.0] * 3


def test_a_reader_keeps_what_it_saw_when_the_run_ends(directory: Path) -> None:
    write_info(directory, run_info("run", status="running"))
    writer = written(directory)
    early = Run(directory)
    writer.commit({"step": [step_row(3)]})
    writer.close()
    assert len(early.steps) == 3
    early.close()
    assert len(losses(directory)) == 4


def test_the_record_is_only_read(directory: Path) -> None:
    written(directory).close()
    connection = open_rank(directory, 0, finished=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM step")
    connection.close()
