"""What is inside of compiled steps, shown on request: the same tensors as in PyNative mode, and the same losses as without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops

from tests.adapters.mindspore.loops import SmallNet, pipeline, train
from trueline.checks.runner import run_checks
from trueline.launch import Recording
from trueline.store import Run, read_tensors

Recorded = Callable[..., Run]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """`recorded(script)`: the run of a script; `eager` and `graph_tensors` as for Recording."""
    opened: list[Run] = []

    def of(script: Callable[[], object], **settings: Any) -> Run:
        ms.set_context(mode=ms.PYNATIVE_MODE)
        ms.set_seed(0)
        recording = Recording("run", ["run"], name=f"run{len(opened)}", **settings)
        recording.start()
        try:
            script()
        finally:
            recording.stop()
            ms.set_context(mode=ms.PYNATIVE_MODE)
        run = Run(recording.directory)
        opened.append(run)
        assert run.info.recorder_error is None
        return run

    yield of
    for run in opened:
        run.close()


class Shared(nn.Cell):
    """One layer that is called at three places, one after the other, and one that gives a nest."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Dense(4, 4)
        self.several = Several()
        self.last = nn.Dense(4, 3)

    def construct(self, x: Tensor) -> Tensor:
        x = ops.tanh(self.same(ops.tanh(self.same(x))))
        x, (scale, _) = self.several(self.same(x))
        return self.last(x * scale)


class Several(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(np.full(4, 0.5, np.float32)), "weight")

    def construct(self, x: Tensor) -> Any:
        return x * self.weight, (x.mean(), ops.argmax(x, 1))


class Boxed(nn.Cell):
    """A layer that gives a dictionary, which taps do not look into."""

    def __init__(self) -> None:
        super().__init__()
        self.box = Box()
        self.last = nn.Dense(4, 3)

    def construct(self, x: Tensor) -> Tensor:
        return self.last(self.box(x)["x"])


class Box(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(np.full(4, 0.5, np.float32)), "weight")

    def construct(self, x: Tensor) -> Any:
        return {"x": x * self.weight}


class WithNone(nn.Cell):
    """The statistics of the normalisation change before the part is reached that gives None."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.part = GivesNone()
        self.last = nn.Dense(4, 3)

    def construct(self, x: Tensor) -> Tensor:
        x, scale, _, _ = self.part(self.norm(x))
        return self.last(x * scale)


class GivesNone(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(np.full(4, 0.5, np.float32)), "weight")

    def construct(self, x: Tensor) -> Any:
        x = x * self.weight
        return x, x.mean(), ops.argmax(x, 1), None


class OwnStep(nn.TrainOneStepCell):
    def construct(self, x: Tensor, y: Tensor) -> Any:
        loss, gradients = ops.value_and_grad(self.network, grad_position=None, weights=self.weights)(x, y)
        self.optimizer(ops.clip_by_global_norm(gradients, 0.5))
        return loss


def model_train() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    model = SmallNet()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    ms.train.Model(model, loss, nn.Adam(model.trainable_params(), 0.01)).train(1, pipeline(), dataset_sink_mode=False)


def one_step(model: nn.Cell, steps: int = 4) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    step = OwnStep(nn.WithLossCell(model, nn.CrossEntropyLoss()), nn.Momentum(model.trainable_params(), 0.1, 0.9)).set_train()
    for x, y in pipeline(8 * steps).create_tuple_iterator(num_epochs=1):
        step(x, y)


def under_jit(model: nn.Cell | None = None, steps: int = 4) -> None:
    model = SmallNet() if model is None else model
    train(model, nn.SGD(model.trainable_params(), 0.1), steps, compiled=True)


def gradient_function() -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    model = SmallNet()
    train(model, nn.Momentum(model.trainable_params(), 0.1, 0.9))


def forward_under_jit() -> None:
    """The loss is compiled, its derivative is asked for outside."""
    model = SmallNet().set_train()
    optimizer = nn.SGD(model.trainable_params(), 0.1)

    @ms.jit
    def forward(x, y):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return ops.cross_entropy(model(x), y)

    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    for x, y in pipeline().create_tuple_iterator(num_epochs=1):
        _, gradients = gradients_of(x, y)
        optimizer(gradients)


def shown(run: Run) -> dict[tuple[Any, ...], Any]:
    """All that is known of the tensors inside of steps, by module or parameter."""
    return {
        (stat.step, role, stat.subject, stat.position): stat
        for role in ("output", "output_grad", "gradient")
        for stat in run.stats(role)
    }


def assert_alike(compiled: Run, eager: Run) -> None:
    of_graph, of_eager = shown(compiled), shown(eager)
    assert of_graph.keys() == of_eager.keys()
    for key, stat in of_graph.items():
        other = of_eager[key]
        assert (stat.shape, stat.dtype) == (other.shape, other.dtype)
        assert (stat.min, stat.max, stat.l2) == pytest.approx((other.min, other.max, other.l2), rel=1e-4, abs=1e-6), key


@pytest.mark.parametrize(
    "script",
    [model_train, lambda: one_step(SmallNet()), under_jit, gradient_function, forward_under_jit],
    ids=["model", "own", "jit", "function", "forward"],
)
def test_the_same_tensors_as_in_pynative_mode(recorded: Recorded, script: Callable[[], None]) -> None:
    plain, eager, compiled = recorded(script), recorded(script, eager=True), recorded(script, graph_tensors=True)
    assert [step.loss for step in compiled.steps] == [step.loss for step in plain.steps]
    assert {stat.step for stat in compiled.stats("output_grad")} == {0, 1, 2, 3}
    assert_alike(compiled, eager)
    assert [step.grad_norm for step in compiled.steps] == pytest.approx([step.grad_norm for step in eager.steps], rel=1e-5)
    assert compiled.unseen == plain.unseen - {"layers", "gradients"}
    assert [(op.name, op.module, op.location) for op in compiled.ops] == [(op.name, op.module, op.location) for op in plain.ops]
    assert {row.gradient for rows in compiled.snapshots.values() for row in rows if 0 <= row.step < 4} == {"value"}


def test_every_call_of_a_cell_and_every_part_of_a_nest(recorded: Recorded) -> None:
    eager = recorded(lambda: under_jit(Shared()), eager=True)
    compiled = recorded(lambda: under_jit(Shared()), graph_tensors=True)
    assert_alike(compiled, eager)
    same = next(module for module in compiled.modules.values() if module.path == "same")
    assert {stat.position for stat in compiled.stats("output") if stat.subject == same.id} == {0, 4, 8}


def test_whole_tensors(recorded: Recorded) -> None:
    eager = recorded(under_jit, eager=True, kept_steps=frozenset({1}))
    compiled = recorded(under_jit, graph_tensors=True, kept_steps=frozenset({1}))
    # The root has the name of the variable that holds it, or of its class where none is in sight.
    expected, given = (
        {name.replace("SmallNet", "model"): tensor for name, tensor in read_tensors(run.directory, 1).items()}
        for run in (eager, compiled)
    )
    assert "output_grad/model.first/0" in expected
    for name, tensor in expected.items():
        np.testing.assert_allclose(given[name], tensor, rtol=1e-4, atol=1e-6)


def test_checks_of_layers_and_gradients_conclude(recorded: Recorded) -> None:
    run = recorded(lambda: under_jit(steps=32), graph_tensors=True)
    assert all(step.grad_norm for step in run.steps)
    findings = {finding.id: finding for finding in run_checks(run)}
    assert findings["tr.05"].conclusion.value == "no_problem"
    plain = {finding.id: finding for finding in run_checks(recorded(lambda: under_jit(steps=32)))}
    assert plain["tr.05"].conclusion.value == "not_checked"
    assert "--graph-tensors" in plain["tr.05"].summary


def test_a_graph_that_does_not_compile_with_taps(recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    """Where None is handed around, parts of the graph are compiled while others run, and taps cannot be part of those."""

    def script() -> None:
        one_step(WithNone())

    plain, run = recorded(script), recorded(script, graph_tensors=True)
    assert [step.loss for step in run.steps] == [step.loss for step in plain.steps]
    assert run.unseen == plain.unseen
    assert run.unseen >= {"layers", "gradients"}
    assert [op.name for op in run.ops] == [op.name for op in plain.ops]
    assert not run.stats("output")
    assert "does not compile with the operators that --graph-tensors puts in" in capsys.readouterr().err


def test_an_output_that_is_not_understood_stays_unseen(recorded: Recorded) -> None:
    run = recorded(lambda: one_step(Boxed()), graph_tensors=True)
    assert "layers" in run.unseen
    assert "gradients" not in run.unseen
    assert {run.modules[stat.subject].path for stat in run.stats("output")} == {"", "last"}


def test_nothing_stays_on_the_cells(recorded: Recorded) -> None:
    model = SmallNet()
    recorded(lambda: under_jit(model), graph_tensors=True)
    assert not any(cell._forward_hook or cell._forward_pre_hook for _, cell in model.cells_and_names())
    assert model(Tensor(np.ones((2, 4), np.float32))).shape == (2, 3)
