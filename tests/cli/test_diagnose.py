"""`trueline diagnose` and `check` from the script to the exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from builders import build_run, trueline

RUNS = Path(".trueline") / "runs"
HEALTHY = """\
import sys
import torch

torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] + x[:, 1] > 0).long()
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, targets in data:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
print("arguments", sys.argv[1:])
"""
SOFTMAX_TWICE = HEALTHY.replace("cross_entropy(net(inputs), targets)", "cross_entropy(net(inputs).softmax(1), targets)")
ENDLESS = HEALTHY.replace("range(3)", "range(10**9)").replace("optimizer.step()", "optimizer.step(); print('step', flush=True)")


def test_healthy_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEALTHY)
    done = trueline("diagnose", "train.py", "--json", "out.json", "--", "--lr", "0.1", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("arguments ['--lr', '0.1']\n")
    assert "No problem found" in done.stdout
    assert done.stderr == ""
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["verdict"]["status"] == "no_problem"
    assert document["recording"]["exit_code"] == 0


def test_broken_script_is_found_out_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SOFTMAX_TWICE)
    done = trueline("diagnose", "train.py", "--name", "broken", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    line = 1 + SOFTMAX_TWICE.splitlines().index(next(each for each in SOFTMAX_TWICE.splitlines() if "softmax" in each))
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["run"] == "broken"
    assert document["verdict"]["cause"] == "cg.04"
    cause = next(item for item in document["checklist"] if item["id"] == "cg.04")
    assert (cause["location"]["file"], cause["location"]["line"]) == ("train.py", line)
    assert f"train.py:{line}" in done.stdout

    again = trueline("check", "broken", "--json", "-", cwd=tmp_path)
    assert again.returncode == 1
    assert json.loads(again.stdout)["verdict"] == document["verdict"]


def test_json_on_standard_output_is_alone_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEALTHY)
    done = trueline("check", "train.py", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["schema"] == "trueline.diagnosis/1"
    assert "arguments []" in done.stderr


def test_module(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "train.py").write_text(HEALTHY)
    done = trueline("diagnose", "-m", "package.train", "--", "--fast", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "arguments ['--fast']" in done.stdout


def test_recorded_run_is_checked_without_a_script(tmp_path: Path) -> None:
    directory = build_run(tmp_path / RUNS / "first", [2.3, 2.2])
    for target in ("first", "latest", str(directory)):
        done = trueline("diagnose", target, cwd=tmp_path)
        assert done.returncode in {0, 2}, done.stdout + done.stderr
        assert "Run first · 2 steps" in done.stdout


def test_interrupted_script_is_checked_up_to_its_last_step(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    child = subprocess.Popen(
        [sys.executable, "-m", "trueline", "diagnose", "train.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A group of its own, as the shell gives it: Ctrl-C goes to every process of the group.
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    for _ in range(20):
        assert child.stdout.readline() == "step\n"
    os.killpg(child.pid, signal.SIGINT)
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 0, output + errors
    assert "The script was interrupted." in output
    assert "KeyboardInterrupt" in errors


def test_terminated_diagnosis_ends_the_script_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    child = subprocess.Popen(
        [sys.executable, "-m", "trueline", "diagnose", "train.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "step\n"
    time.sleep(0.2)
    child.terminate()
    output, _ = child.communicate(timeout=60)
    assert "The script was killed" in output
