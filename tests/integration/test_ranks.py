"""Distributed scripts, recorded from one command: every rank into one run, and the launcher is none of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.commands import check, only_run, recorded

from benchmarks.faults._running import free_port

CASES = Path(__file__).parents[2] / "benchmarks" / "faults" / "cases"


@pytest.mark.parametrize("launcher", [["torchrun"], ["-m", "torch.distributed.run", "--"]], ids=["script", "module"])
def test_all_ranks_of_a_launch_are_recorded(launcher: list[str], tmp_path: Path) -> None:
    script = str(CASES / "tr_04" / "healthy_accumulation.py")
    finished = recorded("--steps", "6", *launcher, "--nproc-per-node", "2", script, cwd=tmp_path, runs=tmp_path / "runs")
    assert finished.returncode == 0, finished.stderr
    run = only_run(tmp_path / "runs")
    assert run.ranks == [0, 1]
    assert run.info.world_size == 2
    assert [len(run.of_rank(rank).steps) for rank in run.ranks] == [6, 6]
    assert run.info.status == "finished"
    assert run.info.name.startswith("healthy_accumulation")


def test_spawned_processes_are_recorded_as_ranks(tmp_path: Path) -> None:
    finished = recorded(str(CASES / "tr_04" / "healthy_spawned.py"), cwd=tmp_path, runs=tmp_path / "runs")
    assert finished.returncode == 0, finished.stderr
    run = only_run(tmp_path / "runs")
    assert run.ranks == [0, 1]
    assert run.info.world_size == 2


def test_a_rank_that_fails_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import os, torch\nif os.environ['RANK'] == '1':\n    raise ValueError('no data')\n")
    finished = recorded("torchrun", "--nproc-per-node", "2", "fails.py", cwd=tmp_path, runs=tmp_path / "runs")
    assert finished.returncode == 1
    assert only_run(tmp_path / "runs").info.status == "failed"
    assert check(tmp_path / "runs", tmp_path)[1]["verdict"]["status"] == "inconclusive"


def test_all_ranks_of_msrun_are_recorded(tmp_path: Path) -> None:
    """Its scheduler runs the script too and is none of them."""
    script = str(CASES / "tr_04" / "healthy_ms_reduced_by_hand.py")
    launch = ["msrun", "--worker_num=2", "--local_worker_num=2", f"--master_port={free_port()}", f"--log_dir={tmp_path}"]
    finished = recorded(*launch, "--join=True", script, cwd=tmp_path, runs=tmp_path / "runs")
    assert finished.returncode == 0, finished.stderr
    run = only_run(tmp_path / "runs")
    assert run.ranks == [0, 1]
    assert (run.info.world_size, run.info.status) == (2, "finished")
    for rank in run.ranks:
        seen = run.of_rank(rank)
        assert len(seen.steps) == 80
        operations = [event.detail for event in seen.events_of("collective")]
        assert operations[0] == {"operation": "init_process_group"}
        assert [detail["of"] for detail in operations if detail["operation"] == "broadcast"] == ["parameter"] * 4
        reduced = [detail for detail in operations if detail["operation"] == "all_reduce"]
        known = [detail for detail in reduced if "of" in detail]
        assert {(detail["of"], detail["op"]) for detail in known} == {("gradient", "SUM")}
        # Divided before they are reduced, gradients are known by their direction, and the bias of one output has none.
        assert {detail["parameter"] for detail in known} == {key for key, one in seen.parameters.items() if one.shape != (1,)}


def test_msrun_takes_no_steps(tmp_path: Path) -> None:
    finished = recorded("--steps", "4", "msrun", "train.py", cwd=tmp_path, runs=tmp_path / "runs")
    assert finished.returncode == 2
    assert "--steps cannot end ranks that msrun starts" in finished.stderr
