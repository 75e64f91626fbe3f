"""What a user reads after a diagnosis."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import msgspec
from builders import build_run
from rich.console import Console

from trueline.diagnose import diagnose
from trueline.model import Conclusion, Evidence, Finding, Location
from trueline.report.terminal import print_report
from trueline.store import Run

LOCATION = Location("train.py", 42, None, "<module>", "    loss = F.cross_entropy(probabilities, y)")
PROBLEM = Finding(
    "cg.04",
    "Wrong loss",
    Conclusion.PROBLEM_FOUND,
    "cross_entropy receives probabilities [0, 1].",
    0.97,
    evidence=[Evidence("The rows of its input sum to 1.", {"row_sum": [0.999, 1.001], "loss": math.nan}, 0, LOCATION)],
    location=LOCATION,
    fix="Pass the logits.",
    limits="Five traced steps.",
)
PASSED = Finding("dp.03", "Not shuffled", Conclusion.NO_PROBLEM, "The order changes.", 0.9, limits="A fixed order.")


def _report(directory: Path, *findings: Finding, width: int = 80, **options: Any) -> str:
    stream = io.StringIO()
    run = Run(directory)
    try:
        print_report(Console(file=stream, width=width, highlight=False), diagnose(run, list(findings)), run, **options)
    finally:
        run.close()
    return stream.getvalue()


def test_verdict_comes_first_with_line_reason_and_fix(tmp_path: Path) -> None:
    text = _report(build_run(tmp_path / "run", [2.3, 2.2]), PASSED, PROBLEM)
    first = text.splitlines()[0]
    assert "Problem found: cg.04 Wrong loss" in first
    order = [
        "cross_entropy receives probabilities [0, 1].",
        "train.py:42",
        "loss = F.cross_entropy(probabilities, y)",
        "The rows of its input sum to 1.",
        "Pass the logits.",
        "97 %",
        "2 steps",
        "dp.03",
        "✓ no problem",
        "✗ problem found",
        "trueline check run -v",
    ]
    positions = [text.index(words) for words in order]
    assert positions == sorted(positions)
    assert "Five traced steps." not in text


def test_evidence_values_and_limits_on_request(tmp_path: Path) -> None:
    text = _report(build_run(tmp_path / "run", [2.3]), PASSED, PROBLEM, verbose=True)
    for words in ("row_sum = [0.999, 1.001]", "loss = NaN", "Five traced steps.", "A fixed order.", "[step 0, train.py:42]"):
        assert words in text


def test_it_fits_in_80_columns_and_is_plain_when_piped(tmp_path: Path) -> None:
    long_place = Location("a/folder/with/a/long/name/and/another/train_the_model.py", 1042)
    wide = Finding(
        "tr.01", "Gradients are not cleared at the right place", Conclusion.PROBLEM_FOUND, "x " * 90, 0.5, location=long_place
    )
    text = _report(build_run(tmp_path / "run", [2.3]), PASSED, PROBLEM, wide, verbose=True)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text


def test_script_that_failed_is_said_to_have(tmp_path: Path) -> None:
    directory = build_run(tmp_path / "run", [2.3], status="failed", exit_code=1, error="ValueError: bad [x]")
    text = _report(directory, PASSED)
    assert "The script failed with exit code 1: ValueError: bad [x]" in text
    assert "No problem found" in text.splitlines()[0]


def test_inconclusive_says_why(tmp_path: Path) -> None:
    text = _report(
        build_run(tmp_path / "run"), Finding("dp.03", "Not shuffled", Conclusion.NOT_CHECKED, "Not checked: no batches")
    )
    assert "Inconclusive" in text.splitlines()[0]
    assert "never trained" in text


def test_consequence_is_told_from_the_cause(tmp_path: Path) -> None:
    follower = Finding("cg.02", "Wrong freezing", Conclusion.PROBLEM_FOUND, "No gradient.", 0.99)
    text = _report(build_run(tmp_path / "run", [2.3]), follower, PROBLEM)
    assert "follows from cg.04" in text


def test_evidence_that_repeats_itself_is_said_once(tmp_path: Path) -> None:
    evidence = [Evidence(f"The rows of its input sum to {total}.") for total in (1.001, 0.999)]
    text = _report(build_run(tmp_path / "run", [2.3]), msgspec.structs.replace(PROBLEM, evidence=evidence))
    assert text.count("The rows of its input sum") == 1
    assert "1.001" in text
