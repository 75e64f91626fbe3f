"""What a script does to files can be taken back from what was kept, whatever it does and in whatever order."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.recorder import Recorder
from trueline.recorder.files import FileWatch
from trueline.recorder.kept_files import MOST_BYTES, KeptFiles
from trueline.recorder.patches import Patches
from trueline.rerun.sandbox.undo import undo
from trueline.store import Writer


@contextmanager
def watched(kept: Path) -> Iterator[None]:
    """Everything that happens to files is kept in this folder as it was before."""
    patches = Patches()
    recorder = Recorder(lambda: Writer(kept, 0), str(kept), budget=0.05)
    FileWatch(recorder, f"{kept}/", KeptFiles(kept, f"{kept}/")).install(patches)
    try:
        yield
    finally:
        patches.undo()


def state(folder: Path) -> dict[str, Any]:
    """Names, kinds, contents, modes and links of everything in a folder; times of files."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        name, mode = str(path.relative_to(folder)), stat.S_IMODE(status.st_mode)
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", mode)
        else:
            found[name] = ("file", mode, path.read_bytes(), status.st_mtime_ns)
    return found


NAMES = ["a", "b", "out", "out/a", "out/deep", "out/deep/c", "new", "new/x", "link"]
names = st.sampled_from(NAMES)


def _write(folder: Path, one: str, other: str) -> None:
    (folder / one).write_text(other, encoding="utf-8")


def _append(folder: Path, one: str, other: str) -> None:
    with (folder / one).open("a", encoding="utf-8") as file:
        file.write(other)


def _low(folder: Path, one: str, other: str) -> None:
    descriptor = os.open(folder / one, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, other.encode())
    os.close(descriptor)


def _from_inside(folder: Path, one: str, _other: str) -> None:
    descriptor = os.open(folder / "out", os.O_RDONLY)
    try:
        os.unlink(one.rpartition("/")[2], dir_fd=descriptor)
    finally:
        os.close(descriptor)


OPERATIONS = {
    "write": _write,
    "append": _append,
    "low": _low,
    "move": lambda folder, one, other: (folder / one).rename(folder / other),
    "replace": lambda folder, one, other: (folder / one).replace(folder / other),
    "remove": lambda folder, one, _other: (folder / one).unlink(),
    "remove inside": _from_inside,
    "empty": lambda folder, one, _other: shutil.rmtree(folder / one),
    "folder": lambda folder, one, _other: (folder / one).mkdir(),
    "folders": lambda folder, one, other: (folder / one / other).mkdir(parents=True),
    "symlink": lambda folder, one, other: (folder / one).symlink_to(folder / other),
    "hard link": lambda folder, one, other: (folder / one).hardlink_to(folder / other),
    "mode": lambda folder, one, _other: (folder / one).chmod(0o640),
    "times": lambda folder, one, _other: os.utime(folder / one, (5, 5)),
    "cut": lambda folder, one, _other: os.truncate(folder / one, 1),
    "copy": lambda folder, one, other: shutil.copy2(folder / one, folder / other),
    "copy all": lambda folder, one, other: shutil.copytree(folder / one, folder / other, dirs_exist_ok=True),
    "move with shutil": lambda folder, one, other: shutil.move(folder / one, folder / other),
}


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), names, names), min_size=1, max_size=12))
def test_any_sequence_of_changes_can_be_taken_back(steps: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as place:
        folder, kept = Path(place) / "work", Path(place) / "kept"
        (folder / "out" / "deep").mkdir(parents=True)
        for name in ("a", "out/a", "out/deep/c"):
            (folder / name).write_text(f"old {name}", encoding="utf-8")
            os.utime(folder / name, (1_000, 1_000))
        (folder / "link").symlink_to("a")
        before = state(folder)
        with watched(kept):
            for operation, one, other in steps:
                with suppress(OSError, shutil.Error, ValueError):
                    OPERATIONS[operation](folder, one, other)
        undo(str(kept))
        assert state(folder) == before


def test_nothing_is_kept_where_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1", encoding="utf-8")
    with watched(tmp_path / "kept"):
        assert (tmp_path / "data.txt").read_text(encoding="utf-8") == "1"
    assert not (tmp_path / "kept").exists()


def test_a_database_is_put_back(tmp_path: Path) -> None:
    def rows() -> list[Any]:
        with sqlite3.connect(tmp_path / "log.db") as connection:
            return connection.execute("SELECT * FROM run").fetchall()

    connection = sqlite3.connect(tmp_path / "log.db")
    connection.executescript("CREATE TABLE run (id); INSERT INTO run VALUES (1);")
    connection.close()
    with watched(tmp_path / "kept"):
        second = sqlite3.connect(tmp_path / "log.db")
        second.execute("INSERT INTO run VALUES (2)")
        second.commit()
        second.close()
    assert rows() == [(1,), (2,)]
    undo(str(tmp_path / "kept"))
    assert rows() == [(1,)]


def test_reading_does_not_touch_the_time_of_the_last_reading(tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("1", encoding="utf-8")
    os.utime(data, (1, 2_000_000_000))
    with watched(tmp_path / "kept"):
        os.truncate(data, 0)
    assert data.stat().st_atime == 1


def test_what_is_too_large_is_named(tmp_path: Path) -> None:
    huge = tmp_path / "huge.bin"
    huge.touch()
    os.truncate(huge, MOST_BYTES + 1)
    with watched(tmp_path / "kept"):
        huge.write_bytes(b"")
    log = (tmp_path / "kept" / "files.jsonl").read_text(encoding="utf-8")
    assert str(huge) in log
    assert "would have had to be kept" in log


def test_a_script_that_closes_all_descriptors_finds_nothing_of_ours_in_its_files(tmp_path: Path) -> None:
    folder, kept = tmp_path / "work", tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    (folder / "old").write_text("as it was")
    before = state(folder)
    with watched(kept):
        (folder / "first").write_text("made")
        descriptors = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
        logs = [each for each in descriptors if _target(each).startswith(str(kept)) and "journal" not in _target(each)]
        assert len(logs) == 1
        os.close(logs[0])
        mine = os.open(folder / "mine", os.O_CREAT | os.O_RDWR)
        os.dup2(mine, logs[0])
        (folder / "old").write_text("changed")
        os.close(logs[0])
        os.close(mine)
    assert (folder / "mine").read_bytes() == b""
    undo(str(kept))
    assert state(folder) == before


def _target(descriptor: int) -> str:
    try:
        return str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError:
        return ""
