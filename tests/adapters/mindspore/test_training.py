"""PyNative loops: `Model.train`, wrappers, groups, loss scaling, checkpoints, and the order of data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, amp, mint, nn, ops

from tests.adapters.mindspore.conftest import Recorded
from tests.adapters.mindspore.loops import SmallNet, pipeline, samples, train


def test_model_train(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet()
        loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
        optimizer = nn.Momentum(model.trainable_params(), 0.1, 0.9)
        trainer = ms.train.Model(model, loss, optimizer, metrics={"accuracy"})
        trainer.train(2, pipeline(), dataset_sink_mode=False)
        trainer.eval(pipeline(16), dataset_sink_mode=False)

    run = recorded(script)
    assert len(run.steps) == 8
    assert all(step.loss and step.grad_norm for step in run.steps)
    assert {(module.type, module.name) for module in run.roots} == {("SmallNet", run.roots[0].name)}
    assert [(call.training, call.grad) for call in run.root_calls] == [(True, True)] * 8 + [(False, False)] * 2
    assert [batch.epoch for batch in run.batches[:8]] == [0] * 4 + [1] * 4
    assert run.loss_calls[0].kind == "cross_entropy"
    assert [op.name for op in run.ops if op.step == 0] == ["linear", "relu", "linear", "cross_entropy"]


def test_train_one_step_cell(recorded: Recorded) -> None:
    losses: list[float] = []

    def script() -> None:
        model = SmallNet()
        step = nn.TrainOneStepCell(nn.WithLossCell(model, nn.CrossEntropyLoss()), nn.Adam(model.trainable_params(), 1e-2))
        step.set_train()
        losses.extend(float(step(x, y)) for x, y in pipeline())

    run = recorded(script)
    assert [step.loss for step in run.steps] == losses
    (optimizer,) = run.optimizers.values()
    assert optimizer.type == "Adam"
    settings = {value.name: value.value for value in run.hyperparameters}
    assert (settings["lr"], settings["betas"]) == (0.01, [0.9, 0.999])


@pytest.mark.parametrize("kind", ["nn", "mint"])
def test_groups_of_parameters(recorded: Recorded, kind: str) -> None:
    def script() -> None:
        model = SmallNet()
        groups = [
            {"params": list(model.first.get_parameters()), "lr": 0.01, "weight_decay": 0.1},
            {"params": list(model.second.get_parameters())},
        ]
        train(model, nn.SGD(groups, 0.1) if kind == "nn" else mint.optim.SGD(groups, 0.1), steps=2)

    run = recorded(script)
    settings = {(value.group, value.name): value.value for value in run.hyperparameters}
    assert (settings[0, "lr"], settings[1, "lr"]) == (0.01, 0.1)
    assert (settings[0, "weight_decay"], settings[1, "weight_decay"]) == (0.1, 0.0)
    paths = {key: parameter.path for key, parameter in run.parameters.items()}
    assert [(part.group, paths[part.parameter or 0]) for part in run.optimizer_parameters] == [
        (0, "first.weight"), (0, "first.bias"), (1, "second.weight"), (1, "second.bias"),
    ]  # fmt: skip


def test_learning_rates_from_a_list(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet()
        train(model, nn.SGD(model.trainable_params(), [0.4, 0.2, 0.1, 0.1]))

    rates = [(value.step, value.value) for value in recorded(script).hyperparameters if value.name == "lr"]
    assert rates == [(0, 0.4), (1, 0.2), (2, 0.1)]


def test_a_loss_scaler_and_its_skipped_step(recorded: Recorded) -> None:
    losses: list[float] = []

    def script() -> None:
        model = SmallNet()
        optimizer = nn.SGD(model.trainable_params(), 0.1)
        scaler = amp.DynamicLossScaler(1024.0, 2, 2)

        def forward(x: Tensor, y: Tensor) -> Any:
            return scaler.scale(ops.cross_entropy(model(x), y))

        gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
        model.set_train()
        for number, (x, y) in enumerate(pipeline()):
            loss, gradients = gradients_of(x * float("inf") if number == 1 else x, y)
            gradients = scaler.unscale(gradients)
            losses.append(float(loss) / 1024)
            finite = amp.all_finite(gradients)
            if finite:
                optimizer(gradients)
            scaler.adjust(finite)

    run = recorded(script)
    assert run.steps[0].loss == pytest.approx(losses[0], rel=1e-6)
    kinds = [event.kind for event in run.events if event.step == 0 and event.kind not in {"seed", "mode", "printed"}]
    assert kinds == ["scale", "backward", "unscale", "optimizer_step"]
    assert [event.value for event in run.events_of("scale")][:2] == [1024.0, 1024.0]
    assert [bool(event.detail.get("skipped")) for event in run.events_of("optimizer_step")] == [False, True, False, False]
    assert [event.value for event in run.events_of("scaler_update")][1] == 512.0


def test_steps_that_are_left_out_because_gradients_are_not_finite(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet()
        optimizer = nn.SGD(model.trainable_params(), 0.1)

        def forward(x: Tensor, y: Tensor, factor: float) -> Any:
            return ops.cross_entropy(model(x), y) * factor

        gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
        for number, (x, y) in enumerate(pipeline(32).create_tuple_iterator(num_epochs=1)):
            _, gradients = gradients_of(x, y, float("inf") if number in (1, 2) else 1.0)
            if amp.all_finite(gradients):
                optimizer(gradients)

    run = recorded(script)
    steps = [event.detail.get("skipped", False) for event in run.events_of("optimizer_step")]
    assert steps == [False, True, True, False]
    kinds = [event.kind for event in run.events if event.kind in ("backward", "optimizer_step")]
    assert kinds == ["backward", "optimizer_step"] * 4


def test_every_batch_is_scored(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet()
        train(model, nn.SGD(model.trainable_params(), 0.1), steps=40)

    run = recorded(script)
    assert [scores.step for scores in run.scores if scores.training] == list(range(40))


def test_a_checkpoint_that_does_not_fit(recorded: Recorded, tmp_path: Path) -> None:
    file = str(tmp_path / "weights.ckpt")

    def script() -> None:
        donor = SmallNet()
        ms.save_checkpoint([{"name": "first.weight", "data": donor.first.weight}, {"name": "odd", "data": Tensor([1.0])}], file)
        model = SmallNet()
        ms.load_param_into_net(model, ms.load_checkpoint(file))
        train(model, nn.SGD(model.trainable_params(), 0.1), steps=1)

    run = recorded(script)
    (load,) = run.events_of("load")
    assert set(load.detail["missing"]) == {"first.bias", "second.weight", "second.bias"}
    assert load.detail["changed"] == 1
    assert {parameter.path for parameter in run.parameters.values() if parameter.loaded is not None} == {"first.weight"}
    assert [event.detail["path"] for event in run.events_of("file_written") if event.detail["path"] == file]
    assert run.events_of("weights_read")


def test_what_stop_gradient_cuts_off(recorded: Recorded) -> None:
    class Cut(SmallNet):
        def construct(self, x: Tensor) -> Tensor:
            return self.second(ops.stop_gradient(ops.relu(self.first(x))))

    def script() -> None:
        model = Cut()
        train(model, nn.SGD(model.trainable_params(), 0.1), steps=2)

    run = recorded(script)
    needs = {op.name: op.outputs[0]["requires_grad"] for op in run.ops if op.step == 0}
    assert needs == {"linear": True, "relu": True, "detach": False, "cross_entropy": True}
    # MindSpore hands the optimizer zeros for them, which are none.
    states = {run.parameters[key].path: snapshots[1].gradient for key, snapshots in run.snapshots.items()}
    assert (states["first.weight"], states["second.weight"]) == ("none", "value")
    assert [(part.steps, part.without_gradient) for part in run.optimizer_parameters] == [(2, 2), (2, 2), (2, 0), (2, 0)]
    assert [(step.with_gradient, step.without_gradient) for step in run.steps] == [(2, 2)] * 2


def test_a_view_is_followed_through_its_copy(recorded: Recorded) -> None:
    class Flat(SmallNet):
        def construct(self, x: Tensor) -> Tensor:
            return self.second(ops.relu(self.first(x)).reshape(2, x.shape[0] // 2, 6).reshape(x.shape[0], -1))

    def script() -> None:
        model = Flat()
        train(model, nn.SGD(model.trainable_params(), 0.1), steps=1)

    ops_of = {op.seq: op for op in recorded(script).ops}
    last = [op for op in ops_of.values() if op.name == "linear"][-1]
    assert ops_of[int(last.inputs[0][1:])].name == "reshape"


@pytest.mark.parametrize("compiled", [False, True], ids=["PyNative", "jit"])
def test_what_is_picked_by_an_index_is_followed(recorded: Recorded, compiled: bool) -> None:
    class Picks(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Dense(4, 6), nn.Dense(6, 3)

        def construct(self, x: Tensor) -> Tensor:
            steps = self.first(x).reshape(-1, 2, 6)
            return self.second(ops.concat([steps[:, -1], steps[:, 0, :]]))

    def script() -> None:
        model = Picks()
        train(model, nn.SGD(model.trainable_params(), 0.1), steps=1, compiled=compiled)

    run = recorded(script)
    ops_of_step = [op for op in run.ops if op.step == 0]
    reshaped = next(op for op in ops_of_step if op.name == "reshape")
    picked = [op for op in ops_of_step if op.name == "getitem"]
    assert [op.settings["index"].removesuffix(", :") for op in picked] == [":, -1", ":, 0"]
    assert [op.inputs for op in picked] == [[f"o{reshaped.seq}"]] * 2
    joined = next(op for op in ops_of_step if op.name == "cat")
    assert joined.inputs == [f"o{op.seq}" for op in picked]


def test_pipelines_are_described(recorded: Recorded) -> None:
    def script() -> None:
        source = list(zip(*samples(), strict=True))
        data = ms.dataset.GeneratorDataset(source, ["x", "label"], shuffle=False)
        data = data.map(lambda x: (x * 2).astype(np.float32), "x").shuffle(4).batch(8)
        for _ in data.create_dict_iterator(num_epochs=1):
            pass

    (loader,) = recorded(script).loaders.values()
    assert (loader.dataset, loader.length, loader.batch_size) == ("GeneratorDataset", 32, 8)
    assert loader.sampler == "ShuffleDataset"
    assert loader.settings["shuffle_buffer"] == 4
    assert [part.split("(")[0] for part in loader.settings["pipeline"]] == ["Generator", "Map", "Shuffle", "Batch"]


def test_nothing_is_left_on_the_model(recorded: Recorded) -> None:
    model = SmallNet().set_train()
    before = {name: set(vars(cell)) for name, cell in model.cells_and_names()}
    call, construct = nn.Cell.__call__, SmallNet.construct

    def script() -> None:
        train(model, nn.SGD(model.trainable_params(), 0.1), steps=2)

    recorded(script)
    after = {name: set(vars(cell)) for name, cell in model.cells_and_names()}
    assert {name: after[name] - names for name, names in before.items()} == {name: set() for name in before}
    assert (nn.Cell.__call__, SmallNet.construct) == (call, construct)


def test_files_of_checkpoints_are_noted(recorded: Recorded, tmp_path: Path) -> None:
    (tmp_path / "old.ckpt").write_bytes(b"x")

    def script() -> None:
        model = SmallNet()
        ms.save_checkpoint(model, str(tmp_path / "old.ckpt"))
        ms.save_checkpoint(model, str(tmp_path / "new"))

    written = {event.detail["path"]: event.detail["new"] for event in recorded(script).events_of("file_written")}
    assert written[str(tmp_path / "old.ckpt")] is False
    assert written[str(tmp_path / "new.ckpt")] is True
    assert (tmp_path / "new.ckpt").is_file()
