"""The steps of a diagnosis: second runs come before the checks, and what they could not do is said by the items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import build_run

from trueline.checks import registry
from trueline.diagnose.conduct import conduct
from trueline.model import Conclusion, Finding
from trueline.store import CLOSER_FOLDER, Run
from trueline.store.reruns import RerunNote, note_rerun

UNSEEN: dict[str, list[Any]] = {"meta": [("unseen", '["operations"]')]}
# The graph's operations are all that it looks at.
ITEM = "mp.04"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(build_run(tmp_path / "run", [1.0, 0.5], rows=UNSEEN))


def said(run: Run, **how: Any) -> Finding:
    assert "operations" in registry()[ITEM].needs
    return next(finding for finding in conduct(run, **how).checklist if finding.id == ITEM)


def test_an_item_says_why_no_closer_look_was_taken(run: Run) -> None:
    def refuse(run: Run) -> None:
        note_rerun(run.directory, CLOSER_FOLDER, RerunNote("it has several ranks"))

    found = said(run, second_runs=[refuse])
    assert found.conclusion is Conclusion.NOT_CHECKED
    assert "no closer look was taken: it has several ranks. Record the script in PyNative mode" in found.limits


def test_a_recorded_run_is_not_looked_at_closer_and_nothing_is_said_of_it(run: Run) -> None:
    found = said(run)
    assert found.conclusion is Conclusion.NOT_CHECKED
    assert "closer look" not in found.limits


def test_what_a_closer_look_did_not_find_stands_beside_what_it_saw(run: Run) -> None:
    def look(run: Run) -> None:
        build_run(run.directory / CLOSER_FOLDER, [1.0, 0.5])
        note_rerun(run.directory, CLOSER_FOLDER, RerunNote(None, "data.csv is gone"))

    told: list[str] = []
    found = said(run, second_runs=[look], about_to=told.append)
    assert found.conclusion is Conclusion.NOT_APPLICABLE
    assert found.limits.endswith("Not all was as the first time: data.csv is gone.")
    assert told == list(registry())
