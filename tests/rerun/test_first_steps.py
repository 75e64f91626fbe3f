"""The second run of a script: what it leaves behind (nothing), and when it does not take place."""

from __future__ import annotations

from pathlib import Path

from integration.commands import TRUELINE, only_run, run

SCRIPT = """
import os, torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
made = "again.txt" if os.path.exists("model.pt") else "first.txt"
with open(made, "w") as file:
    file.write("x")
for step in range(80):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
with open("log.txt", "w") as file:
    file.write("80 steps")
torch.save(net.state_dict(), "model.pt")
"""


def test_leaves_the_folder_as_the_first_run_left_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    run([*TRUELINE, "diagnose", "train.py"], tmp_path, tmp_path / "runs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.txt", "log.txt", "model.pt", "runs", "train.py"]
    assert (tmp_path / "log.txt").read_text() == "80 steps"
    first = only_run(tmp_path / "runs")
    assert sorted(path.name for path in first.directory.iterdir()) == [
        "before", "changes.json", "ending", "origin", "rank0.sqlite", "rerun", "reruns.json", "run.json", "script.py"
    ]  # fmt: skip


def test_is_left_out_on_demand_and_without_a_seed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    run([*TRUELINE, "diagnose", "--no-rerun", "train.py"], tmp_path, tmp_path / "one")
    assert not (only_run(tmp_path / "one").directory / "rerun").exists()
    (tmp_path / "train.py").write_text(SCRIPT.replace("torch.manual_seed(0)", ""))
    run([*TRUELINE, "diagnose", "train.py"], tmp_path, tmp_path / "two")
    assert not (only_run(tmp_path / "two").directory / "rerun").exists()
