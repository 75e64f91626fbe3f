"""Calls of modules that the script makes itself: modes, grad mode, dropout, and which tree they belong to."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import batches, small_net, train
from trueline.launch import record
from trueline.store import Run


def test_modes_and_grad_mode_of_every_call(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        x = torch.randn(5, 4)
        model(x)
        model.eval()
        model(x)
        with torch.no_grad():
            model(x)
        model.train()
        with torch.inference_mode():
            model(x)

    calls = recorded(script).root_calls
    assert [(call.training, call.grad) for call in calls] == [(True, True), (False, True), (False, False), (True, False)]
    assert [call.location.source for call in calls if call.location] == ["model(x)"] * 4
    assert not any(call.loss for call in calls)


def test_mode_changes_are_events_with_their_line(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        model(torch.randn(5, 4))
        model.eval()
        model.train()

    run = recorded(script)
    events = run.events_of("mode")
    assert [event.value for event in events] == [0.0, 1.0]
    assert [event.location.source for event in events if event.location] == ["model.eval()", "model.train()"]
    assert {event.subject for event in events} == {run.roots[0].id}


def test_counts_of_dropout_and_batch_norm_in_training_mode(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Dropout(0.0), nn.BatchNorm1d(4))
        x = torch.randn(6, 4)
        model(x)
        model[1].eval()
        model(x)
        model.eval()
        model[2].train()
        model(x)

    counts = [(call.dropout, call.dropout_active, call.batch_norm, call.batch_norm_batch) for call in recorded(script).root_calls]
    # Dropout with p = 0 drops nothing, in whatever mode.
    assert counts == [(1, 1, 2, 2), (1, 1, 2, 1), (1, 1, 2, 0)]


def test_instance_norm_is_no_batch_norm(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Sequential(nn.Conv1d(2, 3, 1), nn.InstanceNorm1d(3, track_running_stats=True), nn.LSTM(5, 4, 2, dropout=0.1))
        model(torch.randn(2, 2, 5))

    (call,) = recorded(script).root_calls
    assert (call.batch_norm, call.dropout, call.dropout_active) == (0, 1, 1)


class AlwaysDrops(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.fc(x), 0.3)


class DropsInTraining(AlwaysDrops):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.fc(x), 0.3, self.training)


@pytest.mark.parametrize(("kind", "expected"), [(AlwaysDrops, 1), (DropsInTraining, 0)])
def test_functional_dropout_that_ignores_eval_mode(recorded: Recorded, kind: type[nn.Module], expected: int) -> None:
    def script() -> None:
        model = kind()
        model(torch.randn(3, 4))
        model.eval()
        model(torch.randn(3, 4))

    events = recorded(script).events_of("functional_dropout")
    assert len(events) == expected
    assert all(event.location is not None and "F.dropout" in str(event.location.source) for event in events)


def test_a_loss_module_is_told_apart(recorded: Recorded) -> None:
    class OwnLoss(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return (x - y).pow(2).mean()

    def script() -> None:
        model, criterion, own = small_net(), nn.CrossEntropyLoss(), OwnLoss()
        out = model(torch.randn(4, 4))
        criterion(out, torch.tensor([0, 1, 2, 0]))
        own(out, torch.zeros(4, 3))

    assert [call.loss for call in recorded(script).root_calls] == [False, True, True]


def test_parts_called_directly_give_one_tree(recorded: Recorded) -> None:
    class AutoEncoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Linear(4, 2)
            self.decoder = nn.Linear(2, 4)

    def script() -> None:
        model = AutoEncoder()
        z = model.encoder(torch.randn(3, 4))
        model.decoder(z)

    run = recorded(script)
    assert [root.name for root in run.roots] == ["model"]
    assert [module.path for module in run.modules.values()] == ["", "encoder", "decoder"]
    assert [run.modules[call.module].path for call in run.root_calls] == ["encoder", "decoder"]
    assert {parameter.name for parameter in run.parameters.values()} == {
        "encoder.weight", "encoder.bias", "decoder.weight", "decoder.bias",
    }  # fmt: skip


def test_several_models_prefix_their_names(recorded: Recorded) -> None:
    def script() -> None:
        generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
        critic(generator(torch.randn(3, 2)))

    run = recorded(script)
    assert [root.name for root in run.roots] == ["generator", "critic"]
    assert [parameter.name for parameter in run.parameters.values()] == [
        "generator.weight", "generator.bias", "critic.weight", "critic.bias",
    ]  # fmt: skip


def test_one_module_object_at_two_paths(recorded: Recorded) -> None:
    def script() -> None:
        shared = nn.Linear(4, 4)
        model = nn.Sequential(shared, nn.ReLU(), shared)
        model(torch.randn(3, 4))

    run = recorded(script)
    by_path = {module.path: module for module in run.modules.values()}
    assert by_path["0"].same_as is None
    assert by_path["2"].same_as == by_path["0"].id
    outputs = run.stats("output", by_path["0"].id)
    assert len(outputs) == 2, "both calls of the one object are measured"


def test_tied_parameters(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7))
        model[1].weight = model[0].weight
        model(torch.tensor([1, 2, 3]))

    parameters = {parameter.path: parameter for parameter in recorded(script).parameters.values()}
    assert parameters["1.weight"].same_as == parameters["0.weight"].id
    assert parameters["0.weight"].same_as is None


def test_output_made_without_gradients_is_traced_to_its_call(recorded: Recorded) -> None:
    """As in a GAN: the critic sees what the generator made under no_grad."""

    def script() -> None:
        generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
        with torch.no_grad():
            fake = generator(torch.randn(3, 2))
        critic(fake)
        critic(torch.randn(3, 4))

    made, on_fake, on_real = recorded(script).root_calls
    assert on_fake.fed_by == made.seq
    assert made.fed_by is None
    assert on_real.fed_by is None


def test_call_lines_of_inner_modules(recorded: Recorded) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            x = torch.relu(self.first(x))
            return self.second(x)

    def script() -> None:
        net = Net()
        net(torch.randn(2, 4))

    modules = {module.path: module for module in recorded(script).modules.values()}
    sources = {path: (module.built.source if module.built else None) for path, module in modules.items()}
    assert sources == {"": "net = Net()", "first": "self.first = nn.Linear(4, 4)", "second": "self.second = nn.Linear(4, 2)"}
    called = {path: (module.called.source if module.called else None) for path, module in modules.items()}
    assert called == {"": "net(torch.randn(2, 4))", "first": "x = torch.relu(self.first(x))", "second": "return self.second(x)"}
    assert modules["first"].kind == "linear"
    assert modules["first"].settings["in_features"] == 4


def test_outputs_and_their_gradients_are_measured(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1)

    run = recorded(script)
    for path in ("", "0", "1", "2"):
        module = next(module for module in run.modules.values() if module.path == path)
        (output,) = run.stats("output", module.id)
        (gradient,) = run.stats("output_grad", module.id)
        assert output.shape == gradient.shape
        assert output.l2
        assert gradient.l2
        assert output.sketch is not None


def test_an_exception_in_a_model_passes_through_and_recording_goes_on(recorded: Recorded) -> None:
    class Fragile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, x: Tensor, *, fails: bool = False) -> Tensor:
            out: Tensor = self.fc(x)
            if fails:
                raise ValueError("on purpose")
            return out

    def script() -> None:
        model = Fragile()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, optimizer, steps=1)
        with pytest.raises(ValueError, match="on purpose"):
            model(torch.randn(2, 4), fails=True)
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(torch.randn(2, 5))
        train(model, optimizer, steps=1)

    run = recorded(script)
    assert len(run.steps) == 2
    assert len(run.root_calls) == 4
    assert run.root_calls[-1].location is not None
    assert run.root_calls[-1].module == run.roots[0].id, "the failed calls must not leave us inside of a call"


def test_an_exception_that_ends_the_run_is_noted() -> None:
    directory = None
    with pytest.raises(ZeroDivisionError), record(name="failing") as recording:  # noqa: PT012 - the block is the script
        directory = recording.directory
        small_net()(torch.randn(2, 4))
        raise ZeroDivisionError("by hand")
    assert directory is not None
    run = Run(directory)
    assert (run.info.status, run.info.error) == ("failed", "ZeroDivisionError: by hand")
    assert len(run.root_calls) == 1
    run.close()


def test_calls_from_other_threads_are_ignored(recorded: Recorded) -> None:
    def script() -> None:
        model, other = small_net(), nn.Linear(4, 2)
        model(torch.randn(2, 4))
        results: list[Tensor] = []
        thread = threading.Thread(target=lambda: results.append(other(torch.randn(9, 4))))
        thread.start()
        thread.join()
        assert results[0].shape == (9, 2)
        model(torch.randn(2, 4))

    run = recorded(script)
    assert len(run.root_calls) == 2
    assert {root.name for root in run.roots} == {"model"}


def test_a_thread_that_calls_while_the_model_runs_is_ignored(recorded: Recorded) -> None:
    class Waits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            thread = threading.Thread(target=lambda: other(torch.randn(9, 4)))
            thread.start()
            thread.join()
            out: Tensor = self.fc(x)
            return out

    other = nn.Linear(4, 2)
    model = Waits()

    def script() -> None:
        model(torch.randn(2, 4))

    run = recorded(script)
    assert len(run.root_calls) == 1
    assert all(stat.shape != (9, 2) for stat in run.stats("output"))


def test_a_head_replaced_after_a_first_call_is_known(recorded: Recorded) -> None:
    """A dry run to learn the feature size, then a new head: what every fine-tuning script does."""

    def script() -> None:
        model = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 9))
        with torch.no_grad():
            model(torch.randn(1, 4))
        model[1] = nn.Linear(6, 3)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)

    run = recorded(script)
    assert all(held.parameter is not None for held in run.optimizer_parameters)
    assert any(parameter.path == "1.weight" and parameter.shape == (3, 6) for parameter in run.parameters.values())


def test_lazy_modules_are_known_once_they_have_a_shape(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Sequential(nn.LazyLinear(6), nn.ReLU(), nn.Linear(6, 3))
        model(torch.randn(1, 4))
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)

    run = recorded(script)
    assert {parameter.path for parameter in run.parameters.values()} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert all(held.parameter is not None for held in run.optimizer_parameters)


def test_steps_of_root_calls(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=3)
        with torch.no_grad():
            for x, _ in batches(1):
                model(x)

    assert [call.step for call in recorded(script).root_calls] == [0, 1, 2, 3]
