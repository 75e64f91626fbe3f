"""A LeNet through the ways to train that MindSpore has: the same printed losses as alone, every step with what is seen of it,
and nothing that passes unseen. The script is run alone first, in the same process."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mindspore.conftest import Recorded
from trueline.checks.runner import run_checks
from trueline.store import Run

SCRIPT = str(Path(__file__).parents[2] / "scripts" / "ms_lenet.py")
STEPS = 20
Both = tuple[Run, str]


@pytest.fixture
def lenet(recorded: Recorded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """`lenet(mode, way)`: the run, and what the script printed in it, which is what it prints alone."""

    def of(mode: str, way: str) -> Both:
        monkeypatch.setattr(sys, "argv", [SCRIPT, mode, way])
        printed = []

        def script() -> None:
            runpy.run_path(SCRIPT, run_name="__main__")
            printed.append(capsys.readouterr().out)

        script()
        run = recorded(script)
        assert printed[1] == printed[0]
        return run, printed[1]

    return of


def losses_in(printed: str) -> list[float]:
    return [float.fromhex(line) for line in printed.splitlines() if line.startswith("0x")]


def assert_healthy(run: Run, printed: str) -> dict[str, str]:
    """All steps with the losses that were printed, the learning rate and the batches; no alarm. Returns the conclusions."""
    assert [step.loss for step in run.steps] == pytest.approx(losses_in(printed), rel=1e-6)
    assert len(run.steps) == STEPS
    assert [value.value for value in run.hyperparameters if value.name == "lr"] == [0.002]
    trained = [call for call in run.root_calls if call.grad]
    assert len(trained) == STEPS
    assert all(call.training for call in trained)
    assert len({call.batch for call in trained}) == STEPS
    assert {module.type for module in run.roots} == {"LeNet5"}
    concluded = {finding.id: str(finding.conclusion.value) for finding in run_checks(run)}
    assert not [item for item, conclusion in concluded.items() if conclusion in {"problem_found", "error"}], concluded
    return concluded


@pytest.mark.parametrize(("mode", "way"), [("pynative", "train"), ("graph", "train"), ("graph", "sink"), ("graph", "fit")])
def test_model(lenet: Any, mode: str, way: str) -> None:
    """`dataset_sink_mode=True` makes no difference: on a CPU MindSpore trains without a sink."""
    run, printed = lenet(mode, way)
    concluded = assert_healthy(run, printed)
    evaluated = [call for call in run.root_calls if not call.grad]
    assert len(evaluated) == (12 if way == "fit" else 4)
    assert not any(call.training for call in evaluated)
    assert {parameter.dtype for parameter in run.parameters.values()} == {"float32"}
    if mode == "graph":
        assert concluded["tr.05"] == "not_checked"


@pytest.mark.parametrize(("mode", "way"), [("pynative", "o2"), ("graph", "o2"), ("graph", "build"), ("pynative", "auto")])
def test_float16(lenet: Any, mode: str, way: str) -> None:
    run, printed = lenet(mode, way)
    concluded = assert_healthy(run, printed)
    # The parameters stay what they are and are cast on their way into the layers.
    assert {parameter.dtype for parameter in run.parameters.values()} == {"float32"}
    assert {op.outputs[0]["dtype"] for op in run.ops if op.name == "conv2d"} == {"float16"}
    if mode == "graph":
        assert concluded["tr.05"] == "not_checked"


@pytest.mark.parametrize(("mode", "way"), [("graph", "fixed"), ("graph", "scaler"), ("pynative", "scaler")])
def test_loss_scale(lenet: Any, mode: str, way: str) -> None:
    run, printed = lenet(mode, way)
    assert_healthy(run, printed)
    assert {event.value for event in run.events_of("scale")} == {1024.0}


@pytest.mark.parametrize(
    ("way", "kind", "words"),
    [
        ("manager", ValueError, "supported on device `CPU`"),
        ("cell", RuntimeError, r"Unsupported op \[NPUGetFloatStatusV2\] on CPU"),
    ],
)
def test_what_the_cpu_refuses_is_the_scripts_own_error(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, way: str, kind: type[Exception], words: str
) -> None:
    """Scales that leave out steps whose gradients overflow: handed to `Model`, and in `TrainOneStepWithLossScaleCell`."""
    monkeypatch.setattr(sys, "argv", [SCRIPT, "graph", way])
    said = []
    for call in (lambda script: script(), recorded):
        with pytest.raises(kind, match=words) as problem:
            call(lambda: runpy.run_path(SCRIPT, run_name="__main__"))
        # But for the numbers of nodes.
        said.append(re.sub(r"\d+", "", str(problem.value)))
    assert said[1] == said[0]
