"""The many ways in which MindSpore scripts take gradients, clip, scale, schedule, feed and evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Parameter, ParameterTuple, Tensor, amp, mint, nn, ops
from mindspore.experimental import optim
from mindspore.mindrecord import FileWriter

from tests.adapters.mindspore.conftest import Recorded
from tests.adapters.mindspore.loops import SmallNet, pipeline, samples, train
from trueline.checks.runner import run_checks
from trueline.model import Finding
from trueline.store import Run


def finding(run: Run, item: str) -> Finding:
    return next(one for one in run_checks(run) if one.id == item)


def steps_of(optimizer: Any, gradients_of: Any, count: int = 4, change: Any = None) -> None:
    for x, y in pipeline(8 * count).create_tuple_iterator(num_epochs=1):
        gradients = gradients_of(x, y)
        optimizer(gradients if change is None else change(gradients))


def test_grad_operation_called_directly(recorded: Recorded) -> None:
    def script() -> None:
        net = nn.WithLossCell(SmallNet(), nn.CrossEntropyLoss()).set_train()
        optimizer = nn.SGD(net.trainable_params(), 0.1)
        steps_of(optimizer, ops.GradOperation(get_by_list=True)(net, optimizer.parameters))

    run = recorded(script)
    assert len(run.steps) == 4
    assert all(step.grad_norm for step in run.steps)
    assert [step.cleared for step in run.steps] == [None, True, True, True]
    assert [module.type for module in run.roots] == ["SmallNet"]


class TrainStep(nn.Cell):
    """A step of the script's own, which holds the parameters once more, by their full names."""

    def __init__(self, network: nn.Cell, optimizer: Any) -> None:
        super().__init__(auto_prefix=False)
        self.network, self.optimizer = network, optimizer
        self.weights = ParameterTuple(network.trainable_params())
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        loss = self.network(x, y)
        return ops.depend(loss, self.optimizer(self.grad(self.network, self.weights)(x, y)))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("experimental", [False, True])
def test_a_step_that_holds_the_parameters_too(recorded: Recorded, compiled: bool, experimental: bool) -> None:
    def script() -> None:
        net = SmallNet()
        weights = net.trainable_params()
        optimizer = optim.AdamW(weights, lr=0.01) if experimental else nn.SGD(weights, 0.1)
        step = TrainStep(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer).set_train()
        ms.set_context(mode=ms.GRAPH_MODE if compiled else ms.PYNATIVE_MODE)
        try:
            for x, y in pipeline(32).create_tuple_iterator(num_epochs=1):
                step(x, y)
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)

    run = recorded(script)
    assert len(run.steps) == 4
    assert [module.type for module in run.roots] == ["SmallNet"]
    assert len(run.parameters) == len(SmallNet().trainable_params())
    assert finding(run, "cg.01").conclusion == "no_problem"


@pytest.mark.parametrize("way", ["ops.clip_by_norm", "nn.ClipByNorm", "ops.clip_by_global_norm"])
def test_clipping(recorded: Recorded, way: str) -> None:
    def script() -> None:
        model = SmallNet().set_train()
        optimizer = nn.SGD(model.trainable_params(), 0.1)
        clip = nn.ClipByNorm() if way == "nn.ClipByNorm" else None

        def change(gradients: Any) -> Any:
            if way == "ops.clip_by_global_norm":
                return ops.clip_by_global_norm(gradients, 0.1)
            return tuple(clip(one, Tensor(0.1)) if clip is not None else ops.clip_by_norm(one, 0.1) for one in gradients)

        def forward(x: Tensor, y: Tensor) -> Any:
            return ops.cross_entropy(model(x), y)

        steps_of(optimizer, ms.grad(forward, None, optimizer.parameters), change=change)

    run = recorded(script)
    assert all(event.detail["limit"] == pytest.approx(0.1) for event in run.events_of("clip"))
    assert len(run.events_of("clip")) == 4 * (1 if way == "ops.clip_by_global_norm" else 4)
    assert [step.cleared for step in run.steps] == [None, True, True, True]
    assert len(run.roots) == 1


def test_a_static_scaler(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet().set_train()
        optimizer = nn.SGD(model.trainable_params(), 0.1)
        scaler = amp.StaticLossScaler(64.0)

        def forward(x: Tensor, y: Tensor) -> Any:
            return scaler.scale(ops.cross_entropy(model(x), y))

        steps_of(optimizer, ms.grad(forward, None, optimizer.parameters), change=scaler.unscale)

    run = recorded(script)
    assert [(event.kind, event.value) for event in run.events_of("scale", "unscale")] == [("scale", 64.0), ("unscale", 64.0)] * 4
    assert run.steps[0].loss is not None
    assert run.steps[0].loss < 3


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE])
@pytest.mark.parametrize("sink", [False, True])
def test_model_fit_with_an_evaluation(recorded: Recorded, mode: int, *, sink: bool) -> None:
    def script() -> None:
        ms.set_context(mode=mode)
        model = SmallNet()
        trainer = ms.train.Model(model, nn.CrossEntropyLoss(), nn.SGD(model.trainable_params(), 0.1), metrics={"accuracy"})
        trainer.fit(2, pipeline(), pipeline(16), dataset_sink_mode=sink, valid_dataset_sink_mode=False)

    run = recorded(script)
    assert len(run.steps) == 8
    assert all(step.loss for step in run.steps)
    assert len(run.events_of("eval_loss")) == 4
    assert {scores.training for scores in run.scores} >= {False}
    assert run.loss_calls[0].kind == "cross_entropy"


def test_a_fixed_scale_that_the_optimizer_does_not_know(recorded: Recorded) -> None:
    def script(scale: float) -> None:
        model = SmallNet()
        manager = amp.FixedLossScaleManager(128.0, drop_overflow_update=False)
        optimizer = nn.SGD(model.trainable_params(), 0.001, loss_scale=scale)
        loss = nn.CrossEntropyLoss()
        ms.train.Model(model, loss, optimizer, loss_scale_manager=manager).train(2, pipeline(), dataset_sink_mode=False)

    assert finding(recorded(lambda: script(128.0)), "mp.02").conclusion == "no_problem"
    found = finding(recorded(lambda: script(1.0)), "mp.02")
    assert found.conclusion == "problem_found"
    assert "loss_scale=128" in (found.fix or "")


def test_mind_record(recorded: Recorded, tmp_path: Path) -> None:
    file = str(tmp_path / "data.mindrecord")
    writer = FileWriter(file, 1)
    writer.add_schema({"x": {"type": "float32", "shape": [4]}, "label": {"type": "int32"}}, "samples")
    writer.write_raw_data([{"x": x, "label": int(label)} for x, label in zip(*samples(), strict=True)])
    writer.commit()

    def script() -> None:
        for _ in ms.dataset.MindDataset(file, ["x", "label"], shuffle=False).batch(8).create_tuple_iterator(num_epochs=1):
            pass

    run = recorded(script)
    (loader,) = run.loaders.values()
    assert (loader.dataset, loader.batch_size) == ("MindDataset", 8)
    assert [batch.size for batch in run.batches] == [8] * 4
    assert run.batches[0].target_kind == "class"


def test_batches_padded_to_one_length(recorded: Recorded) -> None:
    def rows() -> Any:
        for length in (2, 3, 5, 4):
            yield np.arange(1, length + 1, dtype=np.int32), np.int32(length % 2)

    def script() -> None:
        data = ms.dataset.GeneratorDataset(rows, ["tokens", "label"], shuffle=False)
        for _ in data.padded_batch(2, pad_info={"tokens": ([6], 0)}).create_tuple_iterator(num_epochs=1):
            pass

    run = recorded(script)
    (loader,) = run.loaders.values()
    assert loader.batch_size == 2
    assert [name for name, _ in loader.lines] == ["Generator", "PaddedBatch"]
    assert [batch.size for batch in run.batches] == [2, 2]


def test_losses_of_mint(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet().set_train()
        optimizer = optim.SGD(model.trainable_params(), lr=0.1)

        def forward(x: Tensor, y: Tensor) -> Any:
            return mint.nn.functional.binary_cross_entropy_with_logits(model(x), ops.one_hot(y, 3).float())

        steps_of(optimizer, ms.grad(forward, None, optimizer.parameters), 2)

    run = recorded(script)
    assert [call.kind for call in run.loss_calls] == ["binary_cross_entropy_with_logits"] * 2
    assert len(run.steps) == 2


def test_schedules(recorded: Recorded) -> None:
    def stepped() -> None:
        model = SmallNet()
        optimizer = optim.SGD(model.trainable_params(), lr=0.4)
        scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        train(model, optimizer, 2)
        scheduler.step()

    (last,) = [event for event in recorded(stepped).events_of("scheduler_step") if not event.detail["initial"]]
    assert (last.value, last.detail["type"], last.subject) == (pytest.approx(0.2), "ExponentialLR", 1)

    def given() -> None:
        model = SmallNet()
        rates = nn.cosine_decay_lr(0.0, 0.1, 4, 4, 1)
        train(model, nn.SGD(model.trainable_params(), rates))

    run = recorded(given)
    (event,) = run.events_of("scheduler_step")
    assert event.detail == {"type": "cosine_decay_lr", "initial": True, "by_optimizer": True}
    assert "cosine_decay_lr" in ((event.location and event.location.source) or "")


@pytest.mark.parametrize("clears", [True, False])
def test_a_sum_of_gradients_that_the_script_keeps(recorded: Recorded, *, clears: bool) -> None:
    def script() -> None:
        model = SmallNet().set_train()
        optimizer = nn.SGD(model.trainable_params(), 0.01)
        sums = [Parameter(ops.zeros_like(each), name=f"sum{place}") for place, each in enumerate(optimizer.parameters)]

        def forward(x: Tensor, y: Tensor) -> Any:
            return ops.cross_entropy(model(x), y) / 2

        gradients_of = ms.grad(forward, None, optimizer.parameters)
        for number, (x, y) in enumerate(pipeline(64).create_tuple_iterator(num_epochs=1)):
            for kept, gradient in zip(sums, gradients_of(x, y), strict=True):
                ops.assign_add(kept, gradient)
            if number % 2:
                optimizer(tuple(sums))
                for kept in sums if clears else ():
                    ops.assign(kept, ops.zeros_like(kept))

    run = recorded(script)
    assert [step.cleared for step in run.steps] == [None, clears, clears, clears]
    assert (finding(run, "tr.01").conclusion == "problem_found") is not clears


def test_cells_in_a_plain_list(recorded: Recorded) -> None:
    class Stack(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Dense(4, 6)
            self.hidden = [nn.Dense(6, 6)]
            self.second = nn.Dense(6, 3)

        def construct(self, x: Tensor) -> Tensor:
            x = ops.relu(self.first(x))
            for layer in self.hidden:
                x = ops.relu(layer(x))
            return self.second(x)

    def script() -> None:
        model = Stack()
        train(model, nn.SGD(model.trainable_params(), 0.1))

    found = finding(recorded(script), "tr.02")
    assert found.conclusion == "problem_found"
    assert "weight" in found.summary


def test_settings_in_the_other_convention(recorded: Recorded) -> None:
    def summary(norm: float, drop: Any) -> str:
        def script() -> None:
            model = nn.SequentialCell(nn.Dense(4, 6), nn.BatchNorm1d(6, momentum=norm), drop(), nn.Dense(6, 3))
            train(model, nn.SGD(model.trainable_params(), 0.1), 2)

        return finding(recorded(script), "api.01").summary

    assert "plausible" in summary(0.9, lambda: nn.Dropout(p=0.3))
    assert "plausible" in summary(0.9, lambda: nn.Dropout(keep_prob=0.3))
    assert "Dropout(0.3) drops 70%" in summary(0.9, lambda: nn.Dropout(0.3))
    assert "momentum 0.1" in summary(0.1, lambda: nn.Dropout(p=0.3))


def test_a_derivative_inside_of_a_scaled_loss(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet().set_train()
        optimizer = nn.SGD(model.trainable_params(), 1e-3)
        scaler = amp.StaticLossScaler(256.0)

        def loss_of(x: Tensor, y: Tensor) -> Any:
            scores = model(x)
            return (ops.logsumexp(scores, 1) - (scores * ops.one_hot(y, 3).float()).sum(axis=1)).mean()

        slope_of = ms.grad(lambda x, y: scaler.scale(loss_of(x, y)), 0)

        def forward(x: Tensor, y: Tensor) -> Any:
            slope = slope_of(x, y)
            return scaler.scale(loss_of(x, y) + (slope * slope).sum())

        steps_of(optimizer, ms.grad(forward, None, optimizer.parameters), change=scaler.unscale)

    assert finding(recorded(script), "mp.04").conclusion == "problem_found"
