"""A run that is cut off can be checked up to its last complete step, and a recorder that cannot write never harms the script."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration.commands import LONGEST, SCRIPTS, TRUELINE, alarms, check, environment, only_run, plain, recorded, run

ENDLESS = str(SCRIPTS / "endless.py")
OWN_MOUNTS = ["unshare", "--mount", "--map-root-user"]


def cut_off(command: list[str], folder: Path, step: int, stop: signal.Signals) -> tuple[int, list[str], str]:
    """Start the endless script, send it a signal once it has printed this step: exit code, lines printed, stderr."""
    process = subprocess.Popen(
        [*command, ENDLESS],
        cwd=folder, env=environment(folder / "runs"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if line.startswith(f"step {step} "):
                process.send_signal(stop)
                break
        rest, errors = process.communicate(timeout=LONGEST)
    finally:
        process.kill()
    return process.returncode, [*lines, *rest.splitlines(keepends=True)], errors


def assert_usable(folder: Path, complete: int) -> None:
    """The checks conclude, and the run holds at least this many steps, without a gap."""
    finished, diagnosis = check(folder / "runs", folder)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert not alarms(diagnosis)
    steps = only_run(folder / "runs").steps
    assert [step.id for step in steps] == list(range(len(steps)))
    assert len(steps) >= complete


def test_kill_at_a_random_step(tmp_path: Path) -> None:
    step = random.randint(3, 120)  # noqa: S311 - any step will do
    code, lines, _ = cut_off([*TRUELINE, "run"], tmp_path, step, signal.SIGKILL)
    assert code == -signal.SIGKILL
    run = only_run(tmp_path / "runs")
    assert run.info.status == "killed"
    # A step is safe when the next one starts, so only the last one printed may be missing.
    assert_usable(tmp_path, len([line for line in lines if line.endswith("\n")]) - 1)


def test_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain_code, _, plain_errors = cut_off([sys.executable], tmp_path / "plain", 20, signal.SIGINT)
    code, lines, errors = cut_off([*TRUELINE, "run"], tmp_path, 20, signal.SIGINT)
    assert code == plain_code == -signal.SIGINT
    assert "KeyboardInterrupt" in plain_errors
    assert "KeyboardInterrupt" in errors
    assert only_run(tmp_path / "runs").info.status == "interrupted"
    assert_usable(tmp_path, len(lines) - 1)
    strict = run([*TRUELINE, "check", "latest", "--strict"], tmp_path, tmp_path / "runs")
    assert strict.returncode == 3
    assert "No problem found in an incomplete run" in strict.stdout
    assert "The script was interrupted." in strict.stderr


def test_exception_in_the_script(tmp_path: Path) -> None:
    without = plain(ENDLESS, "--fail-at", "30", cwd=tmp_path / "plain")
    with_trueline = recorded(ENDLESS, "--fail-at", "30", cwd=tmp_path, runs=tmp_path / "runs")
    assert with_trueline.returncode == without.returncode == 1
    assert with_trueline.stdout == without.stdout
    assert without.stderr in with_trueline.stderr
    info = only_run(tmp_path / "runs").info
    assert (info.status, info.exit_code) == ("failed", 1)
    assert "the data of step 30 is broken" in (info.error or "")
    assert len(only_run(tmp_path / "runs").steps) == 30
    assert_usable(tmp_path, 30)


def limit_file_size(folder: Path, kilobytes: int) -> list[str]:
    """A command prefix under which no file grows past the limit, as on a full disk."""
    del folder
    return ["bash", "-c", f'ulimit -f {kilobytes}; trap "" XFSZ; exec "$@"', "bash"]


def small_file_system(folder: Path, kilobytes: int) -> list[str]:
    """A command prefix under which `folder` is a file system of this size, mounted for that process alone."""
    keep = f'code=$?; cp -r "{folder}/." "{folder}.left"; exit $code'
    return [*OWN_MOUNTS, "sh", "-c", f'mount -t tmpfs -o size={kilobytes}k tmpfs "{folder}" && "$@"; {keep}', "sh"]


def full_disks() -> list[Callable[[Path, int], list[str]]]:
    """The ways to run out of space that this machine allows: the first needs no rights at all."""
    ways: list[Callable[[Path, int], list[str]]] = [limit_file_size]
    if shutil.which("unshare"):
        trial = subprocess.run([*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
        if trial.returncode == 0:
            ways.append(small_file_system)
    return ways


@pytest.mark.parametrize("way", full_disks(), ids=lambda way: way.__name__)
@pytest.mark.parametrize("kilobytes", [8, 700])
def test_full_disk(way: Callable[[Path, int], list[str]], kilobytes: int, tmp_path: Path) -> None:
    """At 8 KB not even the first step can be kept; at 700 KB the disk fills up while the script trains."""
    without = plain(ENDLESS, "--steps", "1500", cwd=tmp_path / "plain")
    runs = tmp_path / "disk"
    runs.mkdir()
    with_trueline = run([*way(runs, kilobytes), *TRUELINE, "run", ENDLESS, "--steps", "1500"], tmp_path, runs)
    assert with_trueline.stdout == without.stdout
    assert with_trueline.returncode == without.returncode == 0, with_trueline.stderr
    assert without.stderr == ""
    assert len(with_trueline.stderr.splitlines()) == 1, with_trueline.stderr
    assert with_trueline.stderr.startswith("trueline: ")
    left = runs if way is limit_file_size else runs.with_name("disk.left")
    left.rename(tmp_path / "runs")
    if kilobytes < 100:
        nothing = run([*TRUELINE, "check", "latest"], tmp_path, tmp_path / "runs")
        assert "Traceback" not in nothing.stderr
        assert nothing.returncode == 2
        return
    assert 0 < len(only_run(tmp_path / "runs").steps) < 1500
    assert_usable(tmp_path, 1)


def test_the_limits_do_limit(tmp_path: Path) -> None:
    """Each way refuses a file that is too large, else the tests above would show nothing."""
    for way in full_disks():
        folder = tmp_path / way.__name__
        folder.mkdir()
        grown = run([*way(folder, 8), "dd", "if=/dev/zero", f"of={folder}/file", "bs=1k", "count=64"], tmp_path)
        assert grown.returncode != 0
        assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
