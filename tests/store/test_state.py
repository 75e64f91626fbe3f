"""State files: written in place, alive as long as their process, and what a run's description says without them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import largest_file, run_info

from trueline.store import read_info, write_info
from trueline.store.state import StateFile, is_over, nobody_records, read_state

HOLDER = """
import sys
from pathlib import Path
from trueline.store.state import StateFile
state = StateFile(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that records into the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "ending")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_what_is_told_is_read(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "ending")
    assert read_state(state.path) is not None
    size = state.path.stat().st_size
    state.tell(status="failed", exit_code=3, error="ValueError: Größe", recorder_error="\udcff" * 5000)
    found = read_state(state.path)
    assert found is not None
    assert (found.status, found.exit_code, found.error, found.pid) == ("failed", 3, "ValueError: Größe", os.getpid())
    assert (found.recorder_error or "").startswith("???")
    assert state.path.stat().st_size == size


def test_a_full_disk_does_not_keep_it_back(tmp_path: Path) -> None:
    state = StateFile(tmp_path / "ending")
    other = os.open(tmp_path / "other", os.O_CREAT | os.O_WRONLY)
    with largest_file(state.path.stat().st_size):
        os.write(other, bytes(5000))
        with pytest.raises(OSError, match="large"):
            os.write(other, bytes(1))
        state.tell(status="finished", recorder_error="No space left on device")
    os.close(other)
    assert (found := read_state(state.path)) is not None
    assert found.recorder_error == "No space left on device"


def test_over_when_its_process_is(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    path = tmp_path / "ending"
    assert not is_over(path, read_state(path))
    # Of another machine, or not written to its end: the lock tells.
    assert not is_over(path, None)
    assert not nobody_records(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert is_over(path, read_state(path))
    assert is_over(path, None)
    assert nobody_records(tmp_path)


def test_killed_and_not_yet_buried_is_over(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    assert is_over(tmp_path / "ending", read_state(tmp_path / "ending"))


def test_a_folder_without_states_may_be_in_use(tmp_path: Path) -> None:
    assert not nobody_records(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 1024, b"[" * 1024, b"{}"])
def test_what_is_no_state(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ending").write_bytes(content)
    assert read_state(tmp_path / "ending") is None


def test_a_pipe_is_no_state(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ending")
    assert read_state(tmp_path / "ending") is None


def test_the_description_is_completed_by_the_state(tmp_path: Path) -> None:
    """As where the disk was full when the run ended."""
    write_info(tmp_path, run_info("run", status="running"))
    state = StateFile(tmp_path / "ending")
    assert read_info(tmp_path).status == "running"
    state.tell(status="finished", exit_code=0, seconds=2.0, recorder_error="No space left on device")
    info = read_info(tmp_path)
    assert (info.status, info.exit_code, info.seconds) == ("finished", 0, 2.0)
    assert info.recorder_error == "No space left on device"


def test_the_failure_of_another_rank_is_known(tmp_path: Path) -> None:
    write_info(tmp_path, run_info("run", world_size=2))
    StateFile(tmp_path / "rank0.ending").tell(status="finished")
    StateFile(tmp_path / "rank1.ending").tell(status="finished", recorder_error="disk full")
    assert read_info(tmp_path).recorder_error == "disk full"


def test_closing_leaves_a_file_of_the_script_open(tmp_path: Path) -> None:
    """One that was given the number after the script had closed all descriptors."""
    state = StateFile(tmp_path / "ending")
    number = state._descriptor
    os.close(number)
    with (tmp_path / "precious").open("wb", buffering=0) as file:
        assert file.fileno() == number
        state.tell(status="finished")
        state.close()
        file.write(b"mine")
    assert (tmp_path / "precious").read_bytes() == b"mine"
    assert (found := read_state(state.path)) is not None
    assert found.status == "finished"
