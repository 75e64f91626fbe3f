"""The benchmark runs and prints its table. What it measures is never asserted: the machine may be busy."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.summary import HEADINGS, cost, table

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "overhead.py"


def numbered(blocks: list[list[float]]) -> dict[str, Any]:
    return {str(number): {"seconds": seconds, "cpu": sum(seconds)} for number, seconds in enumerate(blocks)}


def times(**conditions: list[list[float]]) -> dict[str, Any]:
    return {
        "workload": "toy",
        "conditions": {name: {"start_up": 0.5, "bytes": 1200, "blocks": numbered(blocks)} for name, blocks in conditions.items()},
    }


def test_the_first_pair_counts_only_in_the_whole_run() -> None:
    measured = times(plain=[[1.0, 1.0]] * 4, trueline=[[9.0, 1.0], [1.0, 1.0], [1.5, 1.5], [1.0, 1.0]])
    row = cost(measured, "trueline", 1.05)
    assert row.median == 1.0
    assert row.mean == pytest.approx(7 / 6)
    assert row.whole == pytest.approx(17 / 8)
    assert row.bytes_per_step == 150


@pytest.mark.parametrize(("limit", "result"), [(1.30, "pass"), (1.05, "FAIL"), (None, "")])
def test_the_mean_must_keep_the_limit_too(limit: float | None, result: str) -> None:
    measured = times(plain=[[1.0]] * 4, trueline=[[1.0], [1.0], [1.0], [1.6]])
    row = cost(measured, "trueline", limit)
    assert row.median == 1.0
    assert row.result == result


def test_a_second_plain_instance_that_is_not_equal_leaves_the_result_unclear() -> None:
    measured = times(plain=[[1.0]] * 4, trueline=[[1.0]] * 4)
    measured["conditions"]["plain again"] = {"start_up": 0.0, "bytes": 0, "blocks": numbered([[1.2]] * 4)}
    assert cost(measured, "trueline", 1.05).result == "unclear"
    assert cost(measured, "trueline", 1.30).result == "pass"


def test_a_condition_is_paired_with_the_plain_blocks_of_its_own_rounds() -> None:
    measured = times(plain=[[1.0], [5.0], [1.0], [2.0]])
    blocks = numbered([[1.0], [], [], [4.0]])
    measured["conditions"]["hooks"] = {"start_up": 0.0, "bytes": 0, "blocks": {number: blocks[number] for number in "03"}}
    row = cost(measured, "hooks", None)
    assert row.median == 2.0
    assert row.whole == pytest.approx(5 / 3)


def test_the_table_shows_every_heading() -> None:
    text = table([cost(times(plain=[[1.0]], trueline=[[1.0]]), "trueline", 1.05)])
    assert all(heading in text for heading in HEADINGS)


def test_quick_run_prints_every_field(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    # One thread: on a busy machine torch's threads wait for each other for seconds.
    command = [sys.executable, str(BENCHMARK), "--quick", "--threads", "1", "--json", str(figures)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=280)
    assert process.returncode == 0, process.stderr
    for heading in HEADINGS:
        assert heading in process.stdout
    assert "steps wrote" in process.stdout
    rows = {(row["workload"], row["condition"]): row for row in json.loads(figures.read_text())["costs"]}
    limits = {"resnet": 1.05, "gpt": 1.05, "digits_mlp": 1.30}
    if importlib.util.find_spec("mindspore") is None:
        assert "not installed: ms_cnn, ms_cnn_graph" in process.stderr
    else:
        limits |= {"ms_cnn": 1.15, "ms_cnn_graph": 1.10}
    assert {workload for workload, _ in rows} == set(limits)
    for workload, limit in limits.items():
        assert rows[workload, "trueline"]["limit"] == limit
        assert rows[workload, "trueline"]["bytes_per_step"] > 0
        assert rows[workload, "trueline"]["result"] in {"pass", "FAIL", "unclear"}
        assert rows[workload, "plain again"]["limit"] is None
    assert "Not a fair comparison" not in process.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.json"]
