"""Where a recording has no place to go, at its start or later: the script runs as without, one warning, the truth afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from integration.commands import TESTS, environment

WAYS = 37


@pytest.fixture(scope="module")
def outcomes() -> Iterator[list[dict[str, Any]]]:
    """Of all ways, from one process that has imported the framework."""
    if sys.platform != "linux":
        pytest.skip("limits and file systems of a process's own")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        finished = subprocess.run(
            [sys.executable, str(TESTS / "integration" / "places.py"), folder],
            env=environment(), capture_output=True, text=True, timeout=280, check=False,
        )  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        yield [json.loads(line) for line in finished.stdout.splitlines()]


def test_the_script_does_not_suffer_and_the_record_does_not_lie(outcomes: list[dict[str, Any]]) -> None:
    wrong = [f"{each['name']} ({each['expected']}): {text}" for each in outcomes for text in each["wrong"]]
    assert not wrong, "\n".join(wrong)


def test_all_ways_were_tried(outcomes: list[dict[str, Any]]) -> None:
    """File systems of its own may be forbidden; most ways need none."""
    assert len(outcomes) == WAYS
    tried = [each for each in outcomes if not each["skipped"]]
    assert len(tried) >= 28
    assert {each["expected"] for each in tried} == {"none", "part", "whole"}
