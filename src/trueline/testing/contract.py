"""What every adapter records of the same tiny training script.

A framework's test module writes that script once (`TinyTraining`) and inherits the tests:

    class TestContract(AdapterContract):
        training = MyTinyTraining()

The script trains `second(relu(first(x)))`, two linear layers of 4 → 6 → 3 features, in a model whose variable is `model`, with
plain gradient descent on the mean cross-entropy, and is fed by the framework's own loader, in order, eight samples at a time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.launch import record
from trueline.store import Run

BATCH = 8
RATE = 0.1


class Plan(msgspec.Struct, frozen=True):
    """What the script is to do: so many steps, and, where asked for, something more."""

    steps: int = 4
    seed: int | None = None
    softmax: bool = False
    freeze_first: bool = False
    clip: float | None = None
    evaluate: bool = False

    def data(self) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """The samples and their classes: all different, the same on every machine."""
        random = np.random.default_rng(7)
        count = self.steps * BATCH
        return random.normal(size=(count, 4)).astype(np.float32), random.integers(0, 3, count).astype(np.int32)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The content of both layers, one row per output feature."""
        random = np.random.default_rng(11)
        shapes = {"first.weight": (6, 4), "first.bias": (6,), "second.weight": (3, 6), "second.bias": (3,)}
        return {name: (0.5 * random.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()}


class TinyTraining(Protocol):
    """The script in one framework."""

    framework: str

    def __call__(self, plan: Plan) -> list[float]:
        """Run it; gives the loss of each step. With `evaluate`, the model is switched to evaluation after the last step and
        called once with the first batch, without gradients."""


class AdapterContract:
    """The tests. They need nothing but a folder to record into (`tmp_path` of pytest)."""

    training: ClassVar[TinyTraining]

    def recorded(self, folder: Path, plan: Plan) -> tuple[Run, list[float]]:
        with _runs_in(folder), record(name="contract") as recording:
            losses = type(self).training(plan)
        assert recording is not None
        run = Run(recording.directory)
        assert run.info.recorder_error is None
        assert self.training.framework in run.info.frameworks
        return run, losses

    def test_losses_are_those_of_the_script_alone(self, tmp_path: Path) -> None:
        _, losses = self.recorded(tmp_path, Plan())
        assert losses == type(self).training(Plan())

    def test_each_step_has_its_loss_and_gradient_norm(self, tmp_path: Path) -> None:
        run, losses = self.recorded(tmp_path, Plan())
        assert [step.loss for step in run.steps] == losses
        assert all(step.finite and step.grad_norm and math.isfinite(step.grad_norm) for step in run.steps)
        assert [step.backwards for step in run.steps] == [1] * 4
        assert [step.cleared for step in run.steps] == [None, True, True, True]
        assert [(step.with_gradient, step.without_gradient) for step in run.steps] == [(4, 0)] * 4
        order = [(event.step, event.kind) for event in run.events if event.kind in {"backward", "optimizer_step"}]
        assert order == [(step, kind) for step in range(4) for kind in ("backward", "optimizer_step")]

    def test_the_model_is_known_by_its_variable_and_its_layers(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan())
        (root,) = [module for module in run.roots if module.kind != "loss"]
        layers = {module.path: module for module in run.modules.values() if module.root == root.id and module.path}
        assert {path: module.kind for path, module in layers.items() if module.kind == "linear"} == {
            "first": "linear",
            "second": "linear",
        }
        assert all(module.built is not None and module.called is not None for path, module in layers.items() if path != "relu")
        assert layers["first"].settings["in_features"] == 4
        shapes = {parameter.path: parameter.shape for parameter in run.parameters.values()}
        assert shapes == {name: values.shape for name, values in Plan().weights().items()}

    def test_the_optimizer_holds_the_parameters(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan())
        (optimizer,) = run.optimizers.values()
        assert optimizer.built is not None
        assert sorted(part.parameter or 0 for part in run.optimizer_parameters) == sorted(run.parameters)
        assert {part.steps for part in run.optimizer_parameters} == {4}
        assert [(value.step, value.value) for value in run.hyperparameters if value.name == "lr"] == [(0, RATE)]

    def test_parameters_gradients_and_updates_are_measured(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan())
        weight = next(key for key, parameter in run.parameters.items() if parameter.path == "first.weight")
        content = Plan().weights()["first.weight"]
        before = next(stat for stat in run.stats("parameter") if stat.subject == weight and stat.step == -1)
        assert before.l2 is not None
        assert math.isclose(before.l2, float(np.linalg.norm(content)), rel_tol=1e-5)
        gradient = next(stat for stat in run.stats("gradient") if stat.subject == weight and stat.step == 0)
        update = next(stat for stat in run.stats("update") if stat.subject == weight and stat.step == 0)
        assert gradient.l2 is not None
        assert update.l2 is not None
        assert math.isclose(update.l2, RATE * gradient.l2, rel_tol=1e-3)
        states = run.snapshots[weight]
        assert [state.step for state in states] == [-1, 0, 1, 2, 3, 4]
        assert [state.gradient for state in states] == [None, *["value"] * 4, None]

    def test_outputs_and_their_gradients_are_measured(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan())
        paths = {module.id: module.path for module in run.modules.values()}
        for role in ("output", "output_grad"):
            seen = {(paths[stat.subject], stat.shape) for stat in run.stats(role) if stat.step == 0}
            assert {("first", (BATCH, 6)), ("second", (BATCH, 3))} <= seen

    def test_batches_have_their_samples_and_classes(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan())
        _, classes = Plan().data()
        batches = [batch for batch in run.batches if batch.loader is not None]
        assert [batch.size for batch in batches] == [BATCH] * 4
        assert [batch.position for batch in batches] == [0, 1, 2, 3]
        assert {batch.epoch for batch in batches} == {0}
        assert len({sample for batch in batches for sample in batch.fingerprints}) == 4 * BATCH
        assert [target for batch in batches for target in batch.targets or ()] == classes.tolist()
        (loader,) = run.loaders.values()
        assert (loader.length, loader.batch_size, loader.sampler) == (4 * BATCH, BATCH, "SequentialSampler")
        calls = [call for call in run.root_calls if not call.loss]
        assert [call.batch for call in calls] == [batch.seq for batch in batches]
        assert all(call.training and call.grad for call in calls)

    def test_the_loss_and_what_goes_into_it(self, tmp_path: Path) -> None:
        run, losses = self.recorded(tmp_path, Plan())
        call = run.loss_calls[0]
        assert (call.kind, call.value, call.grad) == ("cross_entropy", losses[0], True)
        assert (call.input["shape"], call.target["shape"]) == ([BATCH, 3], [BATCH])
        assert call.input["requires_grad"]
        assert not call.target["requires_grad"]
        assert call.settings["reduction"] == "mean"

    def test_operations_are_linked_from_the_batch_to_the_loss(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan())
        ops = {f"o{op.seq}": op for op in run.ops if op.step == 0}
        (backward, *_) = run.events_of("backward")
        names, reference = [], backward.detail["of"]
        while reference in ops:
            names.append(ops[reference].name)
            reference = ops[reference].inputs[0]
        assert names == ["cross_entropy", "linear", "relu", "linear"]
        assert reference[0] == "b"
        taken = {part for op in ops.values() for part in op.inputs if part.startswith("p")}
        assert taken == {f"p{key}" for key in run.parameters}

    def test_a_softmax_before_the_loss_is_seen(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan(softmax=True))
        ops = {f"o{op.seq}": op for op in run.ops}
        maker = ops[run.loss_calls[0].input["op"]]
        assert (maker.name, maker.settings.get("dim")) == ("softmax", 1)
        assert maker.location is not None

    def test_a_frozen_layer_is_seen(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan(freeze_first=True))
        trainable = {parameter.path: parameter.trainable for parameter in run.parameters.values()}
        assert trainable == {"first.weight": False, "first.bias": False, "second.weight": True, "second.bias": True}
        contents = {run.parameters[key].path: {state.digest for state in states} for key, states in run.snapshots.items()}
        assert len(contents["first.weight"]) == 1
        assert len(contents["second.weight"]) > 1

    def test_clipping_is_seen(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan(clip=0.5))
        clips = run.events_of("clip")
        assert [event.step for event in clips] == [0, 1, 2, 3]
        assert clips[0].detail["kind"] == "norm"
        assert clips[0].detail["limit"] == 0.5
        assert all(step.grad_norm is not None and step.grad_norm <= 0.5001 for step in run.steps)

    def test_evaluation_is_told_from_training(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan(evaluate=True))
        last = [call for call in run.root_calls if not call.loss][-1]
        assert (last.training, last.grad) == (False, False)
        assert [event.value for event in run.events_of("mode")][-1] == 0.0

    def test_seeds_are_noted(self, tmp_path: Path) -> None:
        run, _ = self.recorded(tmp_path, Plan(seed=5))
        assert self.training.framework in {_family(event.detail["library"]) for event in run.events_of("seed")}
        assert 5 in {event.detail["seed"] for event in run.events_of("seed")}


@contextmanager
def _runs_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("TRUELINE_RUNS")
    os.environ["TRUELINE_RUNS"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRUELINE_RUNS"]
        else:
            os.environ["TRUELINE_RUNS"] = before


def _family(library: Any) -> str:
    """The framework that a seed belongs to: PyTorch's package is called `torch`."""
    return "pytorch" if library == "torch" else str(library)
