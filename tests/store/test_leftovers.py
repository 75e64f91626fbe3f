"""What the next command removes, and all that it must leave alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import build_run, run_info

from trueline.store import Run, Writer, begin_run, write_info
from trueline.store.leftovers import clear_leftovers
from trueline.store.staging import staging_in

KILLED = """
import os, signal, sys
from pathlib import Path
from trueline.store import NewRun, begin_run, runs, write_info

{before}
begun = begin_run("train", "first")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUELINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def dead_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def killed(before: str = "") -> None:
    subprocess.run([sys.executable, "-c", KILLED.format(before=before)], check=False, env=os.environ | {"PYTHONPATH": _sources()})


def _sources() -> str:
    import trueline

    return str(Path(trueline.__file__).parents[1])


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_run_that_was_killed_before_it_was_described(folder: Path) -> None:
    killed()
    assert names(folder) == [".sequence", "first", "first/ending"]
    clear_leftovers()
    assert names(folder) == [".sequence"]
    assert begin_run("train", "first").directory == folder / "first"


@pytest.mark.parametrize("where", ["StateFile", "_named"])
def test_a_run_that_was_killed_before_it_had_its_name(folder: Path, where: str) -> None:
    killed(f"runs.{where} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)")
    assert any(name.startswith(".new-") for name in names(folder))
    clear_leftovers()
    assert names(folder) == [".sequence"]


def test_what_a_killed_run_left(folder: Path, tmp_path: Path) -> None:
    killed()
    run, pid = folder / "first", dead_process()
    write_info(run, run_info("first", status="running", pid=pid))
    writer = Writer(run, 0)
    writer.commit({"step": [(0, 1, 1, 0.5, 0.5, 1, 0.1, 0.0, 1, 1, None, None, None)]})
    writer._journal.close()
    kept = names(folder)
    for name in (
        f"rank0.sqlite.{pid}",
        f"run.json.{pid}",
        "tensors/step1-rank0.partial",
        "feed/000001.partial",
        "scratch0/graph.ir",
    ):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_bytes(b"half")
    for staging in (run / f"again-{pid}", folder / f"again-{pid}"):
        (staging / "shared" / "rerun").mkdir(parents=True)
        (staging / "layers" / "0" / "work" / "work").mkdir(parents=True, mode=0o000)
    (tmp_path / "state" / "trueline").mkdir(parents=True)
    (tmp_path / "state" / "trueline" / f"key.{pid}").write_bytes(b"half")
    clear_leftovers()
    assert names(folder) == sorted([*kept, "first/feed", "first/tensors"])
    assert names(tmp_path / "state" / "trueline") == []
    opened = Run(run)
    assert len(opened.steps) == 1
    opened.close()


def test_nothing_of_the_living_is_removed(folder: Path) -> None:
    begun = begin_run("train", "mine")
    write_info(begun.directory, run_info("mine", status="running"))
    writer = Writer(begun.directory, 0)
    pid = os.getpid()
    for name in ("rank0.sqlite.4711", f"run.json.{pid}", "run.json.4711", "tensors/step1-rank0.partial", "scratch0/graph.ir"):
        (begun.directory / name).parent.mkdir(exist_ok=True)
        (begun.directory / name).write_bytes(b"half")
    (folder / f".new-{pid}-7").mkdir()
    with staging_in(begun.directory), staging_in(folder):
        before = names(folder)
        clear_leftovers()
        assert names(folder) == before
    writer.close()


def test_a_staging_folder_of_another_machine_is_held_by_its_lock(folder: Path) -> None:
    with staging_in(folder) as staging:
        other = staging.rename(folder / f"again-{dead_process()}")
        clear_leftovers()
        assert (other / "shared").is_dir()
    clear_leftovers()
    assert not other.exists()


def test_nothing_of_anybody_else_is_removed(folder: Path, tmp_path: Path) -> None:
    pid = dead_process()
    precious = tmp_path / "precious"
    (precious / "tensors").mkdir(parents=True)
    for name in (f"rank0.sqlite.{pid}", f"run.json.{pid}", "tensors/mine.partial", "ending"):
        (precious / name).write_bytes(b"mine")
    # Links into it, and folders with such names that are no runs.
    (folder / "link").symlink_to(precious)
    (folder / f"again-{pid}").symlink_to(precious)
    (folder / f".new-{pid}-3").symlink_to(precious)
    build_run(folder / "run", [1.0])
    (folder / "run" / "tensors").symlink_to(precious / "tensors")
    (folder / "run" / "scratch0").symlink_to(precious)
    (folder / "run" / f"again-{pid}").symlink_to(precious)
    for name in ("notes", "notes/tensors", "empty"):
        (folder / name).mkdir()
    for name in (f"notes/run.json.{pid}", f"notes/rank0.sqlite.{pid}", "notes/tensors/a.partial", "run/rank0.sqlite.bak"):
        (folder / name).write_bytes(b"mine")
    before = names(folder), names(precious)
    clear_leftovers()
    assert (names(folder), names(precious)) == before


def test_layers_that_lead_elsewhere_are_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere" / "work" / "work"
    secret.mkdir(parents=True)
    secret.chmod(0o500)
    layers = folder / f"again-{dead_process()}" / "layers"
    layers.mkdir(parents=True)
    (layers / "0").symlink_to(tmp_path / "elsewhere")
    (layers / "1").mkdir()
    (layers / "1" / "work").symlink_to(tmp_path / "elsewhere" / "work")
    clear_leftovers()
    assert not layers.exists()
    assert secret.stat().st_mode & 0o777 == 0o500


@pytest.mark.parametrize("place", ["nothing", "a file", "a link to itself"])
def test_without_a_folder_of_runs(folder: Path, place: str) -> None:
    folder.rmdir()
    if place == "a file":
        folder.write_bytes(b"mine")
    elif place == "a link to itself":
        folder.symlink_to(folder)
    clear_leftovers()
    assert os.path.lexists(folder) is (place != "nothing")
