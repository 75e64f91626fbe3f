"""The examples of the README and the demo: the cause, and the line it is on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from integration.commands import EXAMPLES, TRUELINE, Finished, alarms, run

EXPECTED = {
    "digits_softmax_loss.py": ("cg.04", "return torch.softmax("),
    "digits_no_zero_grad.py": ("tr.01", "loss.backward()"),
    "digits_eval_in_train_mode.py": ("api.02", "correct += (model(x)"),
    "digits_sorted_no_shuffle.py": ("dp.03", "train_loader = DataLoader("),
    "digits_zero_init.py": ("wi.01", "nn.init.zeros_(module.weight)"),
    "digits_stale_optimizer.py": ("tr.02", "optimizer = torch.optim.Adam("),
    "digits_detached.py": ("cg.02", "self.features(x).detach()"),
    "digits_clip_before_unscale.py": ("mp.03", "clip_grad_norm_("),
    "lenet_mindspore_keep_prob.py": ("api.01", "nn.Dropout(0.2)"),
}
HEALTHY = ["digits_mlp.py", "lenet_mindspore.py"]


def diagnose(name: str, folder: Path) -> tuple[Finished, dict[str, Any]]:
    found = folder / "found.json"
    finished = run([*TRUELINE, "diagnose", str(EXAMPLES / name), "--json", str(found)], folder, folder / "runs")
    assert found.is_file(), f"diagnose wrote no JSON (exit {finished.returncode}):\n{finished.stdout}\n{finished.stderr}"
    diagnosis: dict[str, Any] = json.loads(found.read_text())
    return finished, diagnosis


@pytest.mark.parametrize("name", EXPECTED)
def test_cause_and_line_of_a_broken_example(name: str, tmp_path: Path) -> None:
    cause, code = EXPECTED[name]
    finished, diagnosis = diagnose(name, tmp_path)
    assert diagnosis["verdict"]["cause"] == cause, diagnosis["verdict"]
    assert finished.returncode == 1
    (finding,) = [entry for entry in diagnosis["checklist"] if entry["id"] == cause]
    lines = [number for number, line in enumerate((EXAMPLES / name).read_text().splitlines(), 1) if code in line]
    assert finding["location"] is not None, finding
    assert Path(finding["location"]["file"]).name == name
    assert finding["location"]["line"] in lines, finding
    assert f"{name}:{lines[0]}" in finished.stdout


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_example_has_no_problem(name: str, tmp_path: Path) -> None:
    finished, diagnosis = diagnose(name, tmp_path)
    assert not alarms(diagnosis)
    assert diagnosis["verdict"]["cause"] is None
    assert finished.returncode == 0, finished.stdout


def test_readme_lists_every_example_with_its_cause() -> None:
    rows = dict(re.findall(r"^\| `(\w+\.py)` \|.*\| (\S+) \|$", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    assert rows == dict.fromkeys(HEALTHY, "none") | {name: cause for name, (cause, _) in EXPECTED.items()}
    assert sorted(rows) == sorted(path.name for path in EXAMPLES.glob("*.py"))
