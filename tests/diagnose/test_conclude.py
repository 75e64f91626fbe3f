"""The verdict over all findings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from builders import build_run

from trueline.checks import registry
from trueline.diagnose import diagnose, diagnose_nothing, with_comparison
from trueline.model import Comparison, Conclusion, Diagnosis, Finding, Location
from trueline.store import Run


def _finding(conclusion: Conclusion, check_id: str = "cg.04") -> Finding:
    return Finding(
        check_id, "Wrong loss", conclusion, "Softmax before the loss. It hurts.", 0.9, location=Location("train.py", 42)
    )


def _diagnose(directory: Path, *findings: Finding) -> Diagnosis:
    run = Run(directory)
    try:
        return diagnose(run, list(findings))
    finally:
        run.close()


def test_problem_is_named_with_its_line(tmp_path: Path) -> None:
    verdict = _diagnose(build_run(tmp_path / "run", [2.3]), _finding(Conclusion.PROBLEM_FOUND)).verdict
    assert (verdict.status, verdict.cause) == ("problem_found", "cg.04")
    assert verdict.headline == "Wrong loss: Softmax before the loss (train.py:42)."


@pytest.mark.parametrize(("first", "status"), [(False, "no_problem"), (None, "inconclusive")], ids=["same", "not compared"])
def test_healthy_run_beside_a_reference(tmp_path: Path, first: bool | None, status: str) -> None:
    alone = _diagnose(build_run(tmp_path / "run", [2.3, 2.2]), _finding(Conclusion.NO_PROBLEM))
    beside = with_comparison(alone, "ref", Comparison(first, first, None, None, "What was seen."))
    assert (beside.verdict.status, beside.verdict.cause) == (status, None)
    assert beside.verdict.headline.endswith("What was seen.")


def test_healthy_run(tmp_path: Path) -> None:
    verdict = _diagnose(build_run(tmp_path / "run", [2.3, 2.2]), _finding(Conclusion.NO_PROBLEM)).verdict
    assert (verdict.status, verdict.cause) == ("no_problem", None)
    assert verdict.headline == "No problem found in 2 steps: 1 item passed."


@pytest.mark.parametrize("conclusion", [Conclusion.NOT_CHECKED, Conclusion.ERROR, Conclusion.NOT_APPLICABLE])
def test_nothing_that_passed_is_inconclusive(tmp_path: Path, conclusion: Conclusion) -> None:
    assert _diagnose(build_run(tmp_path / "run", [2.3]), _finding(conclusion)).verdict.status == "inconclusive"


def test_nan_that_nothing_explains_is_inconclusive(tmp_path: Path) -> None:
    diagnosis = _diagnose(build_run(tmp_path / "run", [2.3, math.nan]), _finding(Conclusion.NO_PROBLEM))
    assert diagnosis.verdict.status == "inconclusive"
    assert "step 1" in diagnosis.verdict.headline
    assert diagnosis.nonfinite is not None


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({}, "never trained"),
        ({"status": "failed", "exit_code": 1, "error": "ValueError: no data"}, "ValueError: no data"),
        ({"status": "failed", "exit_code": 3}, "exit code 3"),
        ({"status": "interrupted"}, "interrupted"),
        ({"status": "running", "pid": 2**22 + 1}, "killed"),
    ],
)
def test_run_without_steps_says_why(tmp_path: Path, info: dict[str, Any], words: str) -> None:
    verdict = _diagnose(build_run(tmp_path / "run", **info), _finding(Conclusion.NOT_CHECKED)).verdict
    assert verdict.status == "inconclusive"
    assert words in verdict.headline


def test_recorder_that_gave_up_is_inconclusive(tmp_path: Path) -> None:
    directory = build_run(tmp_path / "run", [2.3, 2.2], recorder_error="database or disk is full")
    verdict = _diagnose(directory, _finding(Conclusion.NO_PROBLEM)).verdict
    assert verdict.status == "inconclusive"
    assert "disk is full" in verdict.headline


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"status": "failed", "exit_code": 1, "error": "ValueError: no data"}, "ValueError: no data"),
        ({"status": "interrupted"}, "interrupted"),
        ({"status": "running", "pid": 2**22 + 1}, "killed"),
        ({"status": "running"}, "still running"),
    ],
)
def test_no_problem_in_a_part_is_not_called_none(tmp_path: Path, info: dict[str, Any], words: str) -> None:
    verdict = _diagnose(build_run(tmp_path / "run", [2.3, 2.2], **info), _finding(Conclusion.NO_PROBLEM)).verdict
    assert verdict.headline.startswith("Incomplete: ")
    assert words in verdict.headline
    assert words in (verdict.incomplete or "")


def test_a_whole_run_is_not_called_incomplete(tmp_path: Path) -> None:
    verdict = _diagnose(build_run(tmp_path / "run", [2.3, 2.2]), _finding(Conclusion.NO_PROBLEM)).verdict
    assert verdict.headline.startswith("No problem found in 2 steps")
    assert verdict.incomplete is None


def test_a_record_without_its_end_is_incomplete(tmp_path: Path) -> None:
    directory = build_run(tmp_path / "run", [2.3, 2.2], rows={"meta": [("ended", "false")]})
    verdict = _diagnose(directory, _finding(Conclusion.NO_PROBLEM)).verdict
    assert verdict.incomplete == "The end of the record is missing."


def test_problem_stands_although_the_recorder_gave_up(tmp_path: Path) -> None:
    directory = build_run(tmp_path / "run", [2.3, 2.2], recorder_error="database or disk is full")
    assert _diagnose(directory, _finding(Conclusion.PROBLEM_FOUND)).verdict.status == "problem_found"


def test_nothing_recorded_leaves_every_item_not_checked() -> None:
    diagnosis = diagnose_nothing("run", "The script never imported PyTorch.")
    assert diagnosis.verdict.status == "inconclusive"
    assert [finding.id for finding in diagnosis.checklist] == list(registry())
    assert {finding.conclusion for finding in diagnosis.checklist} == {Conclusion.NOT_CHECKED}
