"""What is imported before anything is asked for: a script that only imports Trueline pays for nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trueline.cli.main import COMMANDS

HEAVY = {"numpy", "multiprocessing", "sqlite3", "msgspec", "rich"}


def imported_by(source: str) -> set[str]:
    ending = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = subprocess.run([sys.executable, "-c", f"{ending}\n{source}"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_the_package() -> None:
    assert imported_by("import trueline\nprint(trueline.__version__)").isdisjoint(HEAVY)


def test_record_is_the_function_whatever_is_imported() -> None:
    source = "import trueline.recorder, trueline\nassert callable(trueline.record) and trueline.record is trueline.record"
    assert "numpy" in imported_by(source)


@pytest.mark.parametrize("words", [["--help"], ["--version"]], ids=" ".join)
def test_help(words: list[str]) -> None:
    source = f"import sys\nsys.argv[1:] = {words}\nfrom trueline.cli import main\nmain()"
    assert imported_by(source).isdisjoint(HEAVY)


def test_all_commands_are_told() -> None:
    source = "import sys\nsys.argv[1:] = ['--help']\nfrom trueline.cli import main\nmain()"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=True)
    for name, words in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert words in done.stdout
