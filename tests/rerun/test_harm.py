"""A diagnosis leaves all files as plain python does, whatever the script does with them, and also where it is killed."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from benchmarks.harm._places import differences, prepare, what_is_there
from benchmarks.harm._ways import diagnosed, killed
from trueline.store.staging import STAGING


def repeats(diagnosis: dict[str, object] | None) -> str:
    assert diagnosis is not None
    return next(item["conclusion"] for item in diagnosis["checklist"] if item["id"] == "tr.07")


@pytest.mark.parametrize(
    ("way", "framework"),
    [("reference", "pytorch"), ("diagnose", "mindspore"), ("without rights", "pytorch")],
)
def test_all_is_as_plain_python_leaves_it(way: str, framework: str, tmp_path: Path) -> None:
    outcome = diagnosed(way, framework, tmp_path)
    assert not outcome.wrong, "\n".join(outcome.wrong)
    # What the script finds at its start decides its random numbers: the second run found the same.
    assert repeats(outcome.diagnosis) == "no_problem", json.dumps(outcome.diagnosis, indent=1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT], ids=lambda each: each.name)
def test_so_it_is_where_it_is_killed_while_the_script_runs_again(number: signal.Signals, tmp_path: Path) -> None:
    def again(place: Path) -> None:
        while not any((place / "runs").glob(f"*/{STAGING}*/shared/*/run.json")):
            time.sleep(0.02)

    outcome = killed("diagnose", "pytorch", tmp_path, number, again)
    assert outcome.when.endswith("after the training")
    assert not outcome.wrong, "\n".join(outcome.wrong)


def test_what_is_wrong_is_seen(tmp_path: Path) -> None:
    """The tests above are worth as much as what `differences` sees."""
    here = prepare(tmp_path)
    before = what_is_there(tmp_path)
    (here / "pair_b").unlink()
    (here / "pair_b").write_bytes((here / "pair_a").read_bytes())
    (here / "by_link.txt").unlink()
    (here / "settings.json").chmod(0o600)
    (here / "new.txt").touch()
    (here / "untouched.txt").write_text("now")
    found = differences(before, what_is_there(tmp_path))
    assert [line.split(":")[0] for line in found] == [
        "work/by_link.txt is missing", "work/new.txt should not be there", "work/pair_a", "work/pair_b", "work/settings.json",
        "work/untouched.txt",
    ]  # fmt: skip
