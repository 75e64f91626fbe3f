"""`run.json`: whole or not there, and honest errors for whatever else lies in its place."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import run_info
from hypothesis import given
from hypothesis import strategies as st

from trueline.errors import FormatTooNew, RunNotFound
from trueline.store import FORMAT, read_info, write_info


def dead_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_round_trip(tmp_path: Path) -> None:
    info = run_info("run", error="ValueError: Größe 训练\n", world_size=4, exit_code=None)
    write_info(tmp_path, info)
    assert read_info(tmp_path) == info
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_arguments_and_paths_that_are_not_text(tmp_path: Path) -> None:
    write_info(tmp_path, run_info("run", command=[os.fsdecode(b"caf\xe9.py")], cwd=os.fsdecode(b"/home/\xff")))
    info = read_info(tmp_path)
    assert (info.command, info.cwd) == (["caf?.py"], "/home/?")


def test_a_reader_never_sees_half_of_it(tmp_path: Path) -> None:
    write_info(tmp_path, run_info("run", error="x"))
    stop = threading.Event()

    def write() -> None:
        length = 0
        while not stop.is_set():
            length = (length + 7919) % 50_000
            write_info(tmp_path, run_info("run", error="x" * length))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert all(set(read_info(tmp_path).error or "x") == {"x"} for _ in range(200))
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"3", b"{}", b"\xff\xfe\x00", b'{"format": 2}', b'{"format": "1"}', b"[" * 100_000],
    ids=["empty", "half", "list", "null", "number", "nothing", "not-utf-8", "format-only", "format-text", "deep"],
)
def test_what_is_not_a_description(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RunNotFound, match=r"run\.json cannot be read \(.+\)\. Record the run again"):
        read_info(tmp_path)


def test_a_run_of_an_older_format_is_to_be_recorded_again(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(b'{"format": 1}')
    with pytest.raises(RunNotFound, match=r"format 1; this Trueline reads 2\. Record the run again"):
        read_info(tmp_path)


@given(st.binary(max_size=60))
def test_random_bytes_are_refused_in_words(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    directory = tmp_path_factory.mktemp("run")
    (directory / "run.json").write_bytes(content)
    with pytest.raises(RunNotFound):
        read_info(directory)


@pytest.mark.parametrize("more", [{}, {"name": 3, "renamed": True}])
def test_a_newer_format_is_named_whatever_else_changed(tmp_path: Path, more: dict[str, Any]) -> None:
    described = {**msgspec.to_builtins(run_info("run")), "format": FORMAT + 1, **more}
    (tmp_path / "run.json").write_text(json.dumps(described), encoding="utf-8")
    with pytest.raises(FormatTooNew, match=rf"run format {FORMAT + 1}; this Trueline reads up to {FORMAT}. Upgrade"):
        read_info(tmp_path)


@pytest.mark.parametrize("place", ["a file", "a missing folder", "an empty folder", "a folder in its place"])
def test_what_is_not_a_run(tmp_path: Path, place: str) -> None:
    directory = tmp_path / "here"
    if place == "a file":
        directory.write_text("", encoding="utf-8")
    elif place != "a missing folder":
        directory.mkdir()
    if place == "a folder in its place":
        (directory / "run.json").mkdir()
    with pytest.raises(RunNotFound, match="not a Trueline run directory"):
        read_info(directory)


@pytest.mark.parametrize("pid", [None, 10**12])
def test_running_without_its_process_is_killed(tmp_path: Path, pid: int | None) -> None:
    write_info(tmp_path, run_info("run", status="running", pid=pid or dead_process()))
    assert read_info(tmp_path).status == "killed"


def test_running_with_its_process_is_running(tmp_path: Path) -> None:
    write_info(tmp_path, run_info("run", status="running"))
    assert read_info(tmp_path).status == "running"
    write_info(tmp_path, run_info("run", status="failed", pid=dead_process()))
    assert read_info(tmp_path).status == "failed"
