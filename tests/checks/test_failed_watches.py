"""Items that rest on what a watch has missed are not checked; all others are concluded as ever."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from builders import build_run

from trueline.checks import rests_on_failed, run_checks
from trueline.diagnose import diagnose
from trueline.model import Conclusion, Finding
from trueline.report.json import diagnosis_json
from trueline.store import Run

# A loss that doubles at every step, and ends infinite.
LOSSES = [2.0**number for number in range(40)] + [float("inf")] * 4


def failing(*parts: str) -> dict[str, list[Any]]:
    told = [{"watch": "ModuleWatch._leave_inner", "parts": parts, "step": 3, "error": "TypeError: odd"}]
    return {"meta": [("failed_watches", json.dumps(told))]}


def findings(directory: Path, rows: dict[str, list[Any]] | None = None) -> tuple[Run, dict[str, Finding]]:
    run = Run(build_run(directory, LOSSES, rows=rows))
    return run, {finding.id: finding for finding in run_checks(run)}


def test_a_problem_is_none_where_its_evidence_is_not_complete(tmp_path: Path) -> None:
    run, whole = findings(tmp_path / "whole")
    broken, lacking = findings(tmp_path / "broken", failing("step"))
    problems = [key for key, finding in whole.items() if finding.conclusion is Conclusion.PROBLEM_FOUND]
    assert "mp.01" in problems
    for key in problems:
        assert lacking[key].conclusion is Conclusion.NOT_CHECKED, key
        assert "ModuleWatch._leave_inner failed at step 3 (TypeError: odd)" in lacking[key].summary
        assert rests_on_failed(broken, lacking[key])
    for each in (run, broken):
        each.close()


def test_what_does_not_rest_on_it_is_concluded_as_without(tmp_path: Path) -> None:
    run, whole = findings(tmp_path / "whole")
    broken, lacking = findings(tmp_path / "broken", failing("stat:output_grad"))
    differing = {key for key in whole if whole[key] != lacking[key]}
    assert all(rests_on_failed(broken, lacking[key]) for key in differing)
    assert len(differing) < len(whole) / 2
    assert lacking["mp.01"].conclusion is Conclusion.PROBLEM_FOUND
    for each in (run, broken):
        each.close()


def test_the_verdict_and_the_document_name_it(tmp_path: Path) -> None:
    run, lacking = findings(tmp_path / "run", failing("step"))
    diagnosis = diagnose(run, list(lacking.values()))
    assert diagnosis.verdict.status == "inconclusive"
    assert "the watch ModuleWatch._leave_inner failed at step 3 (TypeError: odd)" in diagnosis.verdict.headline
    assert "mp.01" in diagnosis.verdict.headline
    document = json.loads(diagnosis_json(diagnosis, run.info))
    assert document["recording"]["failed_watches"] == [
        {"watch": "ModuleWatch._leave_inner", "parts": ["step"], "step": 3, "error": "TypeError: odd"}
    ]
    run.close()
