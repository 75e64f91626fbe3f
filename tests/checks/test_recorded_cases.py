"""Recordings of cases are made again when what they depend on has changed, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest
import recorded_cases
from recorded_cases import recorded, records

from tests.architecture.sources import PACKAGE


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(recorded_cases, "KEPT", tmp_path / "kept")
    return []


def _recorded(script: Path, made: list[Path]) -> Path:
    def record(runs: Path) -> None:
        made.append(runs)
        (runs / "a-run").mkdir(parents=True)
        (runs / "a-run" / "script.py").write_bytes(script.read_bytes())

    return recorded(script, record)


def test_a_script_is_recorded_once_until_it_changes(tmp_path: Path, made: list[Path]) -> None:
    script = tmp_path / "faulty.py"
    script.write_text("one")
    first = _recorded(script, made)
    assert _recorded(script, made) == first
    assert len(made) == 1
    script.write_text("two")
    second = _recorded(script, made)
    assert len(made) == 2
    assert (second / "script.py").read_text() == "two"
    assert [path.name for path in second.parent.iterdir()] == [second.name]


def test_nothing_is_kept_of_a_recording_that_failed(tmp_path: Path, made: list[Path]) -> None:
    script = tmp_path / "faulty.py"
    script.write_text("one")

    def fail(runs: Path) -> None:
        runs.mkdir()
        raise AssertionError(f"{script.name} did not run")

    with pytest.raises(AssertionError, match="did not run"):
        recorded(script, fail)
    _recorded(script, made)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("recorder/recorder.py", True), ("adapters/pytorch/__init__.py", True), ("errors.py", True), ("cli/run.py", True),
        ("checks/runner.py", False), ("report/json.py", False), ("cli/check.py", False),
    ],
)  # fmt: skip
def test_what_a_recording_depends_on(source: str, expected: bool) -> None:
    assert (PACKAGE / source).is_file()
    assert records(PACKAGE / source) is expected
