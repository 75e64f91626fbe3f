"""The sandbox of second runs: what gets out of it, what it does where the kernel allows none, and when there is doubt."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from integration.commands import MODULE, Finished, only_run, run

from trueline.rerun.sandbox.process import refusal, started
from trueline.store import RERUN_FOLDER
from trueline.store.reruns import rerun_notes

TRAINING = """
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
print("last")
"""
# An address of documentation, in a network without routes: nothing is sent anywhere.
CONNECTING = """
import socket, torch
torch.zeros(1)
seeds = [socket.socket().connect_ex((host, 9)) for host in ("127.0.0.1", "192.0.2.1")]
"""


def diagnosed(folder: Path, script: str, *options: str, before: tuple[str, ...] = ()) -> tuple[Finished, dict[str, object]]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(script)
    command = [*before, *MODULE, "diagnose", "train.py", *options, "--json", "found.json"]
    finished = run(command, folder, folder / "runs")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    items = json.loads((folder / "found.json").read_text())["checklist"]
    return finished, next(item for item in items if item["id"] == "tr.07")


def test_where_the_kernel_allows_none_nothing_runs_again(tmp_path: Path) -> None:
    script = "import torch\nprint('started', file=open('starts.txt', 'a'))\n" + TRAINING
    # In a name space of users that may make no others of any kind.
    limits = " ".join(f"/proc/sys/user/max_{kind}_namespaces" for kind in ("mnt", "user"))
    before = ("unshare", "-Ur", "sh", "-c", f'for each in {limits}; do echo 0 > $each; done; exec "$@"', "sh")
    finished, item = diagnosed(tmp_path, script, before=before)
    assert (tmp_path / "starts.txt").read_text() == "started\n"
    assert item["conclusion"] == "not_checked"
    assert "cannot be run in a sandbox" in str(item["summary"])
    assert "--rerun=unsafe" in str(item["summary"])
    assert finished.stderr == ""

    _, item = diagnosed(tmp_path / "unsafe", script, "--rerun=unsafe", before=before)
    assert item["conclusion"] == "no_problem"
    assert (tmp_path / "unsafe" / "starts.txt").read_text() == "started\n" * 2


def test_connections_are_recorded_and_a_second_run_has_none(tmp_path: Path) -> None:
    # The seed depends on the network, which the second run has not: that is no fault of the script's.
    script = CONNECTING + TRAINING.replace("manual_seed(0)", "manual_seed(seeds[0])")
    _, item = diagnosed(tmp_path, script, before=("unshare", "-rn"))
    found = only_run(tmp_path / "runs")
    (event,) = found.events_of("connected")
    assert event.detail == {"address": "192.0.2.1:9"}
    assert event.location is not None
    assert event.location.source == CONNECTING.splitlines()[-1]
    doubt = rerun_notes(found.directory)[RERUN_FOLDER].doubt
    assert doubt is not None
    assert "192.0.2.1:9" in doubt
    assert "--rerun=network" in doubt
    found.close()
    assert item["conclusion"] == "not_checked"
    assert doubt in str(item["summary"])


def test_the_reference_finds_the_files_as_mine_found_them_and_overwrites_none(tmp_path: Path) -> None:
    script = """
import os, torch
assert not os.path.exists("model.pt")
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
for step in range(8):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
torch.save({"rate": RATE, **net.state_dict()}, "model.pt")
print("rate", RATE)
"""
    (tmp_path / "train.py").write_text(script.replace("RATE", "0.1"))
    (tmp_path / "ref.py").write_text(script.replace("RATE", "0.2"))
    command = [*MODULE, "diagnose", "train.py", "--reference", "ref.py", "--json", "found.json"]
    finished = run(command, tmp_path, tmp_path / "runs")
    assert "rate 0.2" in finished.stdout
    rate = "import torch; print(torch.load('model.pt')['rate'])"
    assert run([sys.executable, "-c", rate], tmp_path).stdout == "0.1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.json", "model.pt", "ref.py", "runs", "train.py"]
    comparison = json.loads((tmp_path / "found.json").read_text())["comparison"]
    assert comparison["first_divergence"]["phase"] == "update", finished.stdout


def test_nothing_that_was_started_outlives_it(tmp_path: Path) -> None:
    """A child that leaves the session of its parent is a process of the sandbox all the same."""
    code = "import subprocess, sys; subprocess.Popen(['sleep', '4321'], start_new_session=True); print(1)"
    (tmp_path / "shared").mkdir()
    (tmp_path / "stage").mkdir()
    orders = {
        "folder": str(tmp_path), "command": [sys.executable, "-c", code], "environment": dict(os.environ),
        "stage": str(tmp_path / "stage"), "layers": None, "size": 1 << 26, "shared": str(tmp_path / "shared"),
        "kept": None, "hidden": [], "written": [], "needed": [], "network": False, "addresses": [],
    }  # fmt: skip
    with started(orders) as process:
        assert process.wait() == 0
    assert refusal(process) is None
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [words for words in commands if b"4321" in words and b"sleep" in words]
