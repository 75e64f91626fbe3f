"""The journal: frames come back as they were, and what was cut off or damaged costs only itself."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from builders import largest_file
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.store.journal import Journal, Rows, held, read_frames

RUNS = settings(max_examples=60)

values = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
frames = st.lists(
    st.dictionaries(st.text(max_size=5), st.lists(st.lists(values, max_size=4), max_size=3), max_size=3), max_size=6
)


@contextmanager
def journal_of(written: list[Rows]) -> Iterator[tuple[Path, list[int]]]:
    """A journal with these frames, and the places at which they end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.journal"
        journal = Journal(path)
        ends = [0]
        for rows in written:
            journal.append(rows)
            ends.append(journal.size)
        journal.close()
        assert path.stat().st_size == ends[-1]
        yield path, ends


def same(one: list[Any], other: list[Any]) -> bool:
    """Equal to the bit: NaN is itself, and -0.0 is not 0.0."""
    return repr(one) == repr(other)


@given(frames)
@RUNS
def test_frames_come_back_with_their_ends(written: list[Rows]) -> None:
    with journal_of(written) as (path, ends):
        found = list(read_frames(path))
        assert same([rows for _, rows in found], written)
        assert [end for end, _ in found] == ends[1:]


@given(frames, st.data())
@RUNS
def test_reading_goes_on_where_it_stopped(written: list[Rows], data: st.DataObject) -> None:
    with journal_of(written) as (path, ends):
        number = data.draw(st.integers(0, len(written)))
        assert same([rows for _, rows in read_frames(path, ends[number])], written[number:])


@given(frames, st.data())
@RUNS
def test_what_is_left_of_a_cut_journal_are_whole_frames(written: list[Rows], data: st.DataObject) -> None:
    with journal_of(written) as (path, ends):
        size = data.draw(st.integers(0, ends[-1]))
        os.truncate(path, size)
        complete = sum(end <= size for end in ends[1:])
        assert same([rows for _, rows in read_frames(path)], written[:complete])


@given(frames, st.binary(max_size=4).map(lambda start: start + b"\xff\xff\xff\xc1") | st.integers(1, 64).map(bytes))
@RUNS
def test_garbage_after_whole_frames_is_ignored(written: list[Rows], garbage: bytes) -> None:
    """Random bytes, which no MessagePack is, or the zeros that a file system leaves when the machine goes down."""
    with journal_of(written) as (path, _):
        with path.open("ab") as file:
            file.write(garbage)
        assert same([rows for _, rows in read_frames(path)], written)


@given(frames, st.binary(min_size=1, max_size=40))
@RUNS
def test_no_garbage_is_an_error_or_harms_what_came_before(written: list[Rows], garbage: bytes) -> None:
    with journal_of(written) as (path, _):
        with path.open("ab") as file:
            file.write(garbage)
        assert same([rows for _, rows in read_frames(path)][: len(written)], written)


def test_a_damaged_length_does_not_cost_memory(tmp_path: Path) -> None:
    path = tmp_path / "rank0.journal"
    path.write_bytes(b"\xff\xff\xff\xff" + bytes(100))
    assert list(read_frames(path)) == []


def test_numbers_of_numpy_come_as_pythons_own() -> None:
    row = (np.float64(1.5), np.float32(0.25), np.int64(-7), np.bool_(True), np.float64(math.nan), np.float32(-math.inf))
    with journal_of([{"step": [row]}]) as (path, _):
        ((_, rows),) = read_frames(path)
        assert same(rows["step"], [[1.5, 0.25, -7, True, math.nan, -math.inf]])


def test_a_frame_that_does_not_fit_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "rank0.journal"
    journal = Journal(path)
    journal.append({"meta": [("key", "value")]})
    size = journal.size
    for limit in (size, size + 1, size + 100):
        with largest_file(limit), pytest.raises(OSError, match=r"File too large|only .* bytes could be written"):
            journal.append({"meta": [("key", "x" * 200)]})
        assert path.stat().st_size == journal.size == size
    journal.append({"meta": [("key", "small")]})
    journal.close()
    assert [rows["meta"] for _, rows in read_frames(path)] == [[["key", "value"]], [["key", "small"]]]


def test_a_journal_is_never_written_twice(tmp_path: Path) -> None:
    Journal(tmp_path / "rank0.journal").close()
    with pytest.raises(FileExistsError):
        Journal(tmp_path / "rank0.journal")


def test_nothing_is_written_after_the_end(tmp_path: Path) -> None:
    """Not even into the script's file that the system gave the journal's number to."""
    journal = Journal(tmp_path / "rank0.journal")
    journal.close()
    with (tmp_path / "precious").open("wb"):
        journal.close()
        with pytest.raises(OSError, match="closed or removed"):
            journal.append({"meta": [("key", "value")]})
    assert (tmp_path / "precious").read_bytes() == b""


def test_a_journal_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "rank0.journal"
    journal = Journal(path)
    with held(path) as free:
        assert not free
    journal.close()
    with held(path) as free, held(path) as again:
        assert (free, again) == (True, False)
    with held(path) as free:
        assert free


def test_the_layout_of_a_frame(tmp_path: Path) -> None:
    """It is part of the format: a little-endian length, then MessagePack."""
    journal = Journal(tmp_path / "rank0.journal")
    journal.append({"optimizer": [(1, "SGD", None)]})
    journal.close()
    content = (tmp_path / "rank0.journal").read_bytes()
    assert int.from_bytes(content[:4], "little") == len(content) - 4
    assert msgspec.msgpack.decode(content[4:]) == {"optimizer": [[1, "SGD", None]]}
