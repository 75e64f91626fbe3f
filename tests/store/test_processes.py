"""Runs whose writer is another process: alive, killed, forked; and directories with more or less in them than expected."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builders import build_run, run_info

from trueline.errors import RunNotFound
from trueline.store import Run, Writer, write_info

WRITER = """
import sys
from pathlib import Path
from trueline.store import Writer

writer = Writer(Path(sys.argv[1]), 0)
for step in range(1_000_000):
    writer.commit({"step": [(step, step, 1, step / 2, 1.0, 1, 0.1, 0.0, 1, 1, None, None, None)], "meta": [("last", str(step))]})
    print(step, flush=True)
    sys.stdin.readline()
"""

FORKING = """
import os, signal, sys
from pathlib import Path
from trueline.recorder import Recorder
from trueline.store import Writer

directory = Path(sys.argv[1])
recorder = Recorder(lambda: Writer(directory, 0), str(directory), 0.05)
recorder.start(framework="none")
os.register_at_fork(after_in_child=recorder.forget)

def end_step():
    recorder.end_step(seq=recorder.next_seq(), optimizer=1, loss=1.0, grad_norm=1.0, backwards=1, cleared=None,
                      with_gradient=1, without_gradient=0)

for step in range(10):
    end_step()
    child = os.fork()
    if child == 0:
        assert not recorder.active
        recorder.__dict__.clear()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (directory / "rank0.journal").exists()
os.kill(os.getpid(), signal.SIGKILL)
"""

READER = """
import os, sys
from pathlib import Path
from trueline.store import Run

if os.geteuid() == 0:
    os.setuid(65534)
directory = Path(sys.argv[1])
try:
    (directory / "probe").touch()
except PermissionError:
    run = Run(directory)
    print([step.loss for step in run.steps])
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_info(tmp_path, run_info("run", status="running"))
    return tmp_path


@pytest.fixture
def writer(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Writes a step, says so, and waits for a line before the next one."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    write_info(directory, run_info("run", status="running", pid=process.pid))
    yield process
    process.kill()
    process.communicate()


def write_steps(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
    assert process.stdout.readline()


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def losses(directory: Path, rank: int | None = None) -> list[float | None]:
    run = Run(directory, rank)
    try:
        return [step.loss for step in run.steps]
    finally:
        run.close()


def test_read_while_it_is_written(directory: Path, writer: subprocess.Popen[str]) -> None:
    write_steps(writer, 2)
    assert losses(directory) == [0.0, 0.5, 1.0]
    assert writer.stdin is not None
    early = Run(directory)
    assert len(early.steps) == 3
    writer.stdin.write("\n")
    writer.stdin.flush()
    write_steps(writer, 49)
    assert len(losses(directory)) == 53
    assert len(early.steps) == 3
    early.close()
    assert writer.poll() is None


def test_read_after_the_writer_was_killed(directory: Path, writer: subprocess.Popen[str]) -> None:
    write_steps(writer, 30)
    writer.send_signal(signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL
    assert files(directory) == ["rank0.journal", "run.json"]
    expected = [step / 2 for step in range(31)]
    assert losses(directory) == expected
    assert files(directory) == ["rank0.sqlite", "run.json"]
    assert losses(directory) == expected


@pytest.mark.parametrize("lost", [1, 2, 500, 5000])
def test_a_torn_journal_costs_only_the_last_steps(directory: Path, writer: subprocess.Popen[str], lost: int) -> None:
    """As when the writer dies within a write, or the machine with it."""
    write_steps(writer, 100)
    writer.kill()
    writer.wait()
    journal = directory / "rank0.journal"
    os.truncate(journal, journal.stat().st_size - lost)
    found = losses(directory)
    assert found == [step / 2 for step in range(len(found))]
    # A step takes about seventy bytes.
    assert 100 - lost // 50 <= len(found) < 101


@pytest.mark.parametrize("garbage", [bytes(4096), b"\xff" * 4096, b"not a journal at all" * 100])
def test_garbage_at_the_end_is_passed_over(directory: Path, writer: subprocess.Popen[str], garbage: bytes) -> None:
    write_steps(writer, 5)
    writer.kill()
    writer.wait()
    with (directory / "rank0.journal").open("ab") as file:
        file.write(garbage)
    assert losses(directory) == [step / 2 for step in range(6)]


def test_a_journal_that_is_written_is_left_to_its_writer(directory: Path, writer: subprocess.Popen[str]) -> None:
    """The state of a run is that of rank 0 on its machine: another rank, or a run of another machine, may still go on."""
    write_steps(writer, 2)
    write_info(directory, run_info("run", status="finished"))
    assert losses(directory) == [0.0, 0.5, 1.0]
    assert files(directory) == ["rank0.journal", "run.json"]
    writer.kill()
    writer.wait()
    assert losses(directory) == [0.0, 0.5, 1.0]
    assert files(directory) == ["rank0.sqlite", "run.json"]


def test_many_first_readers_of_a_killed_run(directory: Path, writer: subprocess.Popen[str]) -> None:
    write_steps(writer, 20)
    writer.kill()
    writer.wait()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: losses(directory), range(40)))
    assert found == [[step / 2 for step in range(21)]] * 40
    assert files(directory) == ["rank0.sqlite", "run.json"]


def test_forked_children_do_not_harm_the_journal_of_their_parent(directory: Path) -> None:
    finished = subprocess.run([sys.executable, "-c", FORKING, str(directory)], capture_output=True, text=True, check=False)
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    assert finished.stderr == ""
    assert losses(directory) == [1.0] * 10


def test_several_ranks(tmp_path: Path) -> None:
    build_run(tmp_path, [1.0], world_size=11)
    for rank in (1, 10, 2):
        writer = Writer(tmp_path, rank)
        writer.commit({"step": [(0, 1, 1, float(rank), 1.0, 1, 0.1, 0.0, 1, 1, None, None, None)]})
        writer.close()
    run = Run(tmp_path)
    assert (run.rank, run.ranks) == (0, [0, 1, 2, 10])
    other = run.of_rank(10)
    assert [step.loss for step in other.steps] == [10.0]
    with pytest.raises(RunNotFound, match=r"Rank 3 is not in .* Expected one of \[0, 1, 2, 10\]"):
        run.of_rank(3)
    run.close()
    other.close()


def test_a_run_whose_first_rank_left_nothing(tmp_path: Path) -> None:
    build_run(tmp_path, [2.0])
    (tmp_path / "rank0.sqlite").rename(tmp_path / "rank1.sqlite")
    run = Run(tmp_path)
    assert run.rank == 1
    run.close()
    assert losses(tmp_path) == [2.0]


def test_stray_files_are_not_ranks(tmp_path: Path) -> None:
    build_run(tmp_path, [1.0])
    for name in ("rank0-copy.sqlite", "rank.sqlite", "rank01.sqlite", "rankX.sqlite", "rank1.sqlite.bak", "rank-1.sqlite"):
        shutil.copy(tmp_path / "rank0.sqlite", tmp_path / name)
    for name in ("rank0-copy.journal", "rank.journal", "rank07.journal", "rank1.journal~", "rank0.sqlite.4711"):
        (tmp_path / name).write_bytes(b"stray")
    (tmp_path / "rank5.sqlite").mkdir()
    (tmp_path / "rank6.journal").mkdir()
    before = files(tmp_path)
    run = Run(tmp_path)
    assert run.ranks == [0]
    assert [step.loss for step in run.steps] == [1.0]
    run.close()
    assert files(tmp_path) == before


def test_a_run_without_a_recording(tmp_path: Path) -> None:
    write_info(tmp_path, run_info("run"))
    with pytest.raises(RunNotFound, match="holds no recording"):
        Run(tmp_path)
    assert files(tmp_path) == ["run.json"]


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\x00" + b"\x07" * 5000])
def test_a_broken_rank_file_is_told_in_words(tmp_path: Path, content: bytes) -> None:
    write_info(tmp_path, run_info("run"))
    (tmp_path / "rank0.sqlite").write_bytes(content)
    with pytest.raises(RunNotFound, match=r"rank0\.sqlite cannot be read"):
        losses(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"not a journal at all" * 100, b"\x03\x00\x00\x00abc"])
@pytest.mark.parametrize("status", ["finished", "running"])
def test_a_broken_journal_is_told_in_words_and_left_alone(tmp_path: Path, content: bytes, status: str) -> None:
    write_info(tmp_path, run_info("run", status=status))
    (tmp_path / "rank0.journal").write_bytes(content)
    with pytest.raises(RunNotFound, match=r"rank0\.journal cannot be read .* Record the run again"):
        losses(tmp_path)
    assert files(tmp_path) == ["rank0.journal", "run.json"]
    assert (tmp_path / "rank0.journal").read_bytes() == content


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A place that other users can reach, as pytest's own folders are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o755)


def read_only(directory: Path) -> str:
    for path in directory.iterdir():
        path.chmod(0o444)
    directory.chmod(0o555)
    finished = subprocess.run([sys.executable, "-c", READER, str(directory)], capture_output=True, text=True, check=True)
    return finished.stdout.strip()


def test_read_only_directory(shelf: Path) -> None:
    build_run(shelf / "run", [0.5, 0.25])
    assert read_only(shelf / "run") == "[0.5, 0.25]"


def test_read_only_directory_of_a_killed_run(shelf: Path) -> None:
    directory = shelf / "run"
    directory.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    write_info(directory, run_info("run", status="running", pid=process.pid))
    write_steps(process, 2)
    process.kill()
    process.communicate()
    assert read_only(directory) == "[0.0, 0.5, 1.0]"
    assert files(directory) == ["rank0.journal", "run.json"]
