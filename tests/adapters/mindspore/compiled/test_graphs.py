"""The operations of compiled steps: as many, as connected and on the same lines as those of the same model in PyNative mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import pytest
from mindspore import Tensor, nn, ops

from tests.adapters.mindspore.conftest import Recorded
from tests.adapters.mindspore.loops import SmallNet, pipeline, train
from trueline.checks.runner import run_checks
from trueline.model import Op
from trueline.store import Run


class Stack(nn.Cell):
    """Cells in a list, a branch that is decided when it is compiled, and a cut in the way of the gradient."""

    def __init__(self, *, cut: bool = False) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(4, 4) for _ in range(3)])
        self.norm = nn.LayerNorm((4,))
        self.head = nn.Dense(4, 3)
        self.cut = cut

    def construct(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + ops.relu(layer(x))
        if self.cut:
            x = ops.stop_gradient(x)
        return self.head(self.norm(x))


class Careless(nn.Cell):
    """A result that is thrown away, a layer that is never called, and a softmax where none belongs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(4, 6)
        self.act = nn.ReLU()
        self.forgotten = nn.Dense(6, 6)
        self.second = nn.Dense(6, 3)

    def construct(self, x: Tensor) -> Tensor:
        x = self.first(x)
        self.act(x)
        return ops.softmax(self.second(x), axis=-1)


def train_in_graph_mode(model: nn.Cell, steps: int = 4) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    step = nn.TrainOneStepCell(nn.WithLossCell(model, nn.CrossEntropyLoss()), nn.Adam(model.trainable_params(), 0.01)).set_train()
    for x, y in pipeline(8 * steps).create_tuple_iterator(num_epochs=1):
        step(x, y)


def told(run: Run) -> list[tuple[Any, ...]]:
    """The operations of the first step without their numbers: name, module, line, shapes, and where the inputs come from."""
    ops_of_step = [op for op in run.ops if op.step == 0]
    places = {f"o{op.seq}": place for place, op in enumerate(ops_of_step)}

    def source(reference: str) -> Any:
        return places.get(reference, reference if reference[0] == "p" else reference[0])

    return [
        (
            op.name, None if op.module is None else run.modules[op.module].path,
            None if op.location is None else op.location.line,
            [source(reference) for reference in op.inputs], [output["shape"] for output in op.outputs[:1]], op.used,
        )
        for op in ops_of_step
    ]  # fmt: skip


def named(run: Run, name: str) -> Op:
    return next(op for op in run.ops if op.name == name)


def gradient_states(run: Run) -> dict[str, set[str | None]]:
    return {
        run.parameters[number].name: {row.gradient for row in rows if 0 <= row.step < 4} for number, rows in run.snapshots.items()
    }


def test_the_same_operations_as_in_pynative_mode(recorded: Recorded) -> None:
    def script(*, compiled: bool) -> None:
        model = SmallNet()
        train(model, nn.SGD(model.trainable_params(), 0.1), compiled=compiled)

    eager, compiled = recorded(lambda: script(compiled=False)), recorded(lambda: script(compiled=True))
    assert told(compiled) == told(eager)
    assert [call.kind for call in compiled.loss_calls] == ["cross_entropy"]
    assert compiled.loss_calls[0].input["shape"] == [8, 3]
    assert compiled.loss_calls[0].location == eager.loss_calls[0].location
    assert compiled.events_of("backward")[0].detail["of"] == f"o{named(compiled, 'cross_entropy').seq}"
    assert [module.called is not None for module in compiled.modules.values()] == [True, True, True]


def test_cells_of_a_list_are_told_apart_in_graph_mode_and_under_jit(recorded: Recorded) -> None:
    def under_jit() -> None:
        model = Stack()
        train(model, nn.SGD(model.trainable_params(), 0.1), compiled=True)

    for run in (recorded(lambda: train_in_graph_mode(Stack())), recorded(under_jit)):
        linear = [run.modules[op.module].name for op in run.ops if op.name == "linear" and op.module is not None]
        assert linear == ["layers.0", "layers.1", "layers.2", "head"]
        assert run.modules[named(run, "layer_norm").module or 0].name == "norm"
        assert run.unseen >= {"layers", "gradients"}
        assert not run.unseen & {"operations", "freezing", "losses"}


def test_which_parameters_get_a_gradient_is_known(recorded: Recorded) -> None:
    run = recorded(lambda: train_in_graph_mode(Stack(cut=True)))
    states = gradient_states(run)
    assert states["layers.0.weight"] == {"none"}
    assert states["head.weight"] == {"value"}
    held = {run.parameters[place.parameter].name: place for place in run.optimizer_parameters if place.parameter is not None}
    assert held["layers.0.weight"].without_gradient == held["layers.0.weight"].steps == 4
    assert held["head.weight"].without_gradient == 0
    cut = {finding.id: finding for finding in run_checks(run)}["cg.02"]
    assert cut.conclusion.value == "problem_found"
    assert cut.location is not None
    assert cut.location.source == "x = ops.stop_gradient(x)"


def test_faults_of_structure_are_found_in_graph_mode(recorded: Recorded) -> None:
    run = recorded(lambda: train_in_graph_mode(Careless()))
    assert not named(run, "relu").used
    findings = {finding.id: finding for finding in run_checks(run)}
    connections, loss = findings["cg.03"], findings["cg.04"]
    assert connections.conclusion.value == loss.conclusion.value == "problem_found"
    assert connections.location is not None
    assert connections.location.source == "self.act(x)"
    assert any("forgotten" in evidence.text for evidence in connections.evidence)
    assert loss.location is not None
    assert loss.location.source == "return ops.softmax(self.second(x), axis=-1)"


def test_a_derivative_inside_of_the_loss_is_not_followed(recorded: Recorded) -> None:
    """The rest of the operations is kept, but nothing passes for want of what was not understood."""

    def script() -> None:
        model = SmallNet()
        optimizer = nn.SGD(model.trainable_params(), 0.1)

        def total(x: Tensor) -> Tensor:
            return model(x).sum()

        by_input = ms.grad(total)

        def forward(x: Tensor, y: Tensor) -> Tensor:
            return ops.cross_entropy(model(x), y) + ops.square(by_input(x)).mean()

        gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)

        @ms.jit
        def step(x: Tensor, y: Tensor) -> Tensor:
            loss, gradients = gradients_of(x, y)
            optimizer(gradients)
            return loss

        for x, y in pipeline().create_tuple_iterator(num_epochs=1):
            step(x, y)

    run = recorded(script)
    assert run.ops
    assert run.unseen >= {"operations", "freezing", "losses"}
    assert all(gradient is None for states in gradient_states(run).values() for gradient in states)


def test_files_of_the_compiler_are_gone_and_its_settings_as_before(recorded: Recorded) -> None:
    from mindspore import context
    from mindspore._c_expression import ms_ctx_param

    settings = context._context()
    before = [settings.get_param(name) for name in (ms_ctx_param.save_graphs, ms_ctx_param.save_graphs_path)]
    run = recorded(lambda: train_in_graph_mode(SmallNet(), steps=2))
    assert run.ops
    assert all(path.is_file() and path.suffix != ".ir" for path in run.directory.iterdir())
    assert [settings.get_param(name) for name in (ms_ctx_param.save_graphs, ms_ctx_param.save_graphs_path)] == before


def test_a_user_who_saves_graphs_keeps_them(recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS_PATH", str(tmp_path / "mine"))
    run = recorded(lambda: train_in_graph_mode(SmallNet(), steps=2))
    assert not run.ops
    assert "operations" in run.unseen
