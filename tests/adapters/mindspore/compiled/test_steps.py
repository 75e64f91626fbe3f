"""Graph mode and `ms.jit`: steps are recorded from outside, and what is not seen is declared."""

from __future__ import annotations

import mindspore as ms
import pytest
from mindspore import nn, ops

from tests.adapters.mindspore.conftest import Recorded
from tests.adapters.mindspore.loops import SmallNet, pipeline, train
from trueline.checks.runner import run_checks

INSIDE = {"layers", "scores", "dropout"}


def test_a_step_under_jit(recorded: Recorded) -> None:
    losses: list[float] = []

    def script() -> None:
        model = SmallNet()
        losses.extend(train(model, nn.SGD(model.trainable_params(), 0.1), compiled=True))

    run = recorded(script)
    assert [step.loss for step in run.steps] == losses
    assert run.unseen == INSIDE | {"gradients", "order"}
    assert [event.kind for event in run.events if event.kind in {"backward", "optimizer_step"}] == [
        "backward",
        "optimizer_step",
    ] * 4
    assert [value.value for value in run.hyperparameters if value.name == "lr"] == [0.1]
    assert {stat.step for stat in run.stats("update")} == {0, 1, 2, 3}
    assert [(call.training, call.grad) for call in run.root_calls] == [(True, True)] * 4
    assert all(call.batch is not None for call in run.root_calls)


def test_graph_mode_with_a_gradient_function(recorded: Recorded) -> None:
    """The optimizer is called by the script: it sees the gradients, and so does the record."""

    def script() -> None:
        ms.set_context(mode=ms.GRAPH_MODE)
        model = SmallNet()
        train(model, nn.Momentum(model.trainable_params(), 0.1, 0.9))

    run = recorded(script)
    assert run.unseen == INSIDE
    assert all(step.grad_norm for step in run.steps)
    assert [step.cleared for step in run.steps] == [None, True, True, True]


def test_graph_mode_with_model_train(recorded: Recorded) -> None:
    def script() -> None:
        ms.set_context(mode=ms.GRAPH_MODE)
        model = SmallNet()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        rates = nn.ExponentialDecayLR(0.1, 0.5, 1)
        ms.train.Model(model, loss, nn.SGD(model.trainable_params(), rates)).train(1, pipeline(), dataset_sink_mode=False)

    run = recorded(script)
    assert len(run.steps) == 4
    assert all(step.loss for step in run.steps)
    assert [value.value for value in run.hyperparameters if value.name == "lr"][:3] == [0.1, 0.05, 0.025]
    assert {module.type for module in run.roots} == {"SmallNet"}


def test_nothing_passes_that_could_not_be_seen(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet()
        train(model, nn.SGD(model.trainable_params(), 0.1), steps=8, compiled=True)

    findings = {finding.id: finding for finding in run_checks(recorded(script))}
    for key in ("ds.02", "tr.01", "tr.03", "tr.05", "mp.03"):
        assert findings[key].conclusion.value == "not_checked", key
    assert "--pynative" in findings["tr.05"].summary
    # What the compiler tells of the operations is enough for these.
    for key in ("cg.02", "cg.03", "cg.04", "tr.02"):
        assert findings[key].conclusion.value == "no_problem", key
    assert findings["ds.01"].conclusion.value == "no_problem"


def test_functions_that_are_watched_compile_as_they_are(recorded: Recorded) -> None:
    """Compiled code refers to loss functions, clipping and scalers of which the script sees stand-ins."""
    from mindspore.ops import cross_entropy

    scaler = ms.amp.DynamicLossScaler(4.0, 2, 10)

    def script() -> None:
        model = SmallNet()
        x, y = next(iter(pipeline()))

        @ms.jit
        def scaled_loss(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
            return scaler.scale(cross_entropy(model(x), y) + ops.cross_entropy(model(x), y))

        @ms.jit
        def clipped(x: ms.Tensor) -> ms.Tensor:
            return ops.clip_by_value(x, -0.5, 0.5)

        assert float(scaled_loss(x, y)) == pytest.approx(8 * float(ops.cross_entropy(model(x), y)), rel=1e-4)
        assert float(clipped(x).max()) <= 0.5

    recorded(script)


def test_pynative_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    from trueline.launch import Recording
    from trueline.store import Run

    recording = Recording("eager", ["eager"], name="eager", eager=True)
    recording.start()
    try:
        ms.set_context(mode=ms.GRAPH_MODE)
        model = SmallNet()
        train(model, nn.SGD(model.trainable_params(), 0.1), compiled=True)
    finally:
        recording.stop()
    run = Run(recording.directory)
    assert run.unseen == frozenset()
    assert run.ops
    assert run.loss_calls
    assert "in PyNative mode" in capsys.readouterr().err
    run.close()


def test_gradients_added_up_in_a_compiled_step(recorded: Recorded) -> None:
    @ms.jit_class
    class Sum:
        def __init__(self, optimizer: nn.Optimizer) -> None:
            self.optimizer = optimizer
            self.kept = optimizer.parameters.clone(prefix="kept", init="zeros")
            self.zeros = optimizer.parameters.clone(prefix="zeros", init="zeros")
            self.count = ms.Parameter(ms.Tensor(1, ms.int32), "count")
            self.map = ops.HyperMap()

        def __call__(self, gradients):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - read by MindSpore's compiler
            self.map(ops.partial(ops.assign_add), self.kept, gradients)
            if self.count % 2 == 0:
                self.optimizer(self.kept)
                self.map(ops.partial(ops.assign), self.kept, self.zeros)
            ops.assign_add(self.count, ms.Tensor(1, ms.int32))
            return True

    def script() -> None:
        model = SmallNet().set_train()
        add = Sum(nn.SGD(model.trainable_params(), 0.1))

        def forward(x, y):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            return ops.cross_entropy(model(x), y)

        gradients_of = ms.value_and_grad(forward, None, model.trainable_params())

        @ms.jit
        def step(x, y):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
            loss, gradients = gradients_of(x, y)
            add(gradients)
            return loss

        for x, y in pipeline(64).create_tuple_iterator(num_epochs=1):
            step(x, y)

    run = recorded(script)
    assert len(run.steps) == 4
    assert [step.backwards for step in run.steps] == [2] * 4
    assert not any(event.detail.get("skipped") for event in run.events_of("optimizer_step"))


def test_two_gradient_functions_and_a_scaler(recorded: Recorded) -> None:
    """Gradient functions are made by one piece of code; each has its own model. What a scaler multiplied is not the loss."""
    losses: list[float] = []

    def script() -> None:
        ms.set_context(mode=ms.GRAPH_MODE)
        scaler = ms.amp.StaticLossScaler(64.0)
        one, other = SmallNet(), nn.SequentialCell(nn.Dense(4, 3))

        def first(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
            return scaler.scale(ops.cross_entropy(one(x), y))

        def second(x: ms.Tensor, y: ms.Tensor) -> ms.Tensor:
            return ops.cross_entropy(other(x), y)

        for model, forward, scale in ((one, first, 64.0), (other, second, 1.0)):
            optimizer = nn.SGD(model.trainable_params(), 0.1)
            gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
            for x, y in pipeline(16).create_tuple_iterator(num_epochs=1):
                loss, gradients = gradients_of(x, y)
                optimizer(scaler.unscale(gradients) if model is one else gradients)
                losses.append(float(loss) / scale)

    run = recorded(script)
    assert [step.loss for step in run.steps] == pytest.approx(losses)
    assert [run.modules[call.module].type for call in run.root_calls] == ["SmallNet"] * 2 + ["SequentialCell"] * 2
    assert [event.kind for event in run.events_of("scale", "unscale")] == ["scale", "unscale"] * 2
