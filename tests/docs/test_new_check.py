"""`make new-check` in a copy of the project: what it writes is complete, and its tests pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "benchmarks", "docs", "pyproject.toml", "README.md")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy(source, folder / name)
    return folder


def python(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *words],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tr.08", "wrong_thing"], "There is a check tr.08 already"),
        (["xx.01", "wrong_thing"], "ID is a family"),
        (["tr.9", "wrong_thing"], "ID is a family"),
        (["tr.09", "Wrong thing"], "NAME is the fault in small letters"),
        (["tr.09"], "Usage: make new-check"),
    ],
)
def test_what_cannot_be_a_check_is_refused(copy: Path, words: list[str], said: str) -> None:
    done = python(copy, "docs/new_check.py", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list((copy / "src" / "trueline" / "checks").glob("tr_09*"))


def test_a_new_check_passes_its_tests(copy: Path) -> None:
    made = python(copy, "docs/new_check.py", "tr.09", "wrong_thing")
    assert made.returncode == 0, made.stderr
    pytest_words = ("-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider")
    files = ("tests/docs/test_checks_documented.py", "tests/checks/test_cases.py")
    # One of each kind: the others differ in what they train.
    done = python(copy, *pytest_words, *files, "-k", "documented or (tr.09 and diabetes)")
    assert done.returncode == 0, done.stdout
    assert "1 xfailed" in done.stdout
    concluded = python(copy, "-c", "from trueline.checks import check_of_id; print(check_of_id('tr.09').title)")
    assert concluded.stdout == "Wrong thing\n"
    again = python(copy, "docs/new_check.py", "tr.09", "wrong_thing")
    assert again.returncode == 2
    assert "already" in again.stderr
