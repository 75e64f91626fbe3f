"""Where steps begin and end: optimizers, their parameters and settings, accumulation, and training without any."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.optim import lr_scheduler

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import batches, small_net, train
from trueline.launch import record
from trueline.store import Run


def test_registration_of_an_optimizer(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        unknown = nn.Parameter(torch.zeros(2, 2))
        groups = [{"params": model[0].parameters()}, {"params": [*model[2].parameters(), unknown], "lr": 0.5}]
        optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        train(model, optimizer, steps=3)

    run = recorded(script)
    (optimizer,) = run.optimizers.values()
    assert optimizer.type == "SGD"
    assert optimizer.built is not None
    assert optimizer.built.source == "optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)"
    paths = {key: parameter.path for key, parameter in run.parameters.items()}
    held = [(part.group, part.position, paths.get(part.parameter or 0), part.shape) for part in run.optimizer_parameters]
    assert held == [
        (0, 0, "0.weight", (6, 4)), (0, 1, "0.bias", (6,)),
        (1, 0, "2.weight", (3, 6)), (1, 1, "2.bias", (3,)), (1, 2, None, (2, 2)),
    ]  # fmt: skip
    assert [(part.steps, part.without_gradient) for part in run.optimizer_parameters] == [(3, 0)] * 4 + [(3, 3)]
    assert [(step.with_gradient, step.without_gradient) for step in run.steps] == [(4, 1)] * 3
    rates = {(value.group, value.name): value.value for value in run.hyperparameters}
    assert (rates[0, "lr"], rates[1, "lr"], rates[0, "momentum"]) == (0.1, 0.5, 0.9)


def test_a_parameter_group_added_later(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
        train(model, optimizer, steps=1)
        optimizer.add_param_group({"params": model[2].parameters(), "lr": 0.01})
        train(model, optimizer, steps=1)

    run = recorded(script)
    assert [(part.group, part.position) for part in run.optimizer_parameters] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [(part.steps, part.without_gradient) for part in run.optimizer_parameters] == [(2, 0), (2, 0), (1, 0), (1, 0)]


def test_steps_of_an_optimizer_whose_model_is_called_late(recorded: Recorded) -> None:
    def script() -> None:
        scale = nn.Parameter(torch.ones(1))
        late = nn.Linear(2, 1)
        optimizer = torch.optim.SGD([scale, *late.parameters()], lr=0.1)
        (scale * 2).sum().backward()
        optimizer.step()
        late(torch.randn(3, 2)).sum().backward()
        optimizer.step()

    held = recorded(script).optimizer_parameters
    assert [part.parameter is None for part in held] == [True, False, False]
    assert [part.without_gradient for part in held] == [0, 1, 1]


def test_gradient_norm(recorded: Recorded) -> None:
    norms: list[float] = []

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(3):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            norms.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item())
            optimizer.step()

    run = recorded(script)
    assert [step.grad_norm for step in run.steps] == pytest.approx(norms, rel=1e-5)
    assert all(step.finite for step in run.steps)


def test_nan_gradients_are_told(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        (model(torch.randn(2, 4)).sum() * float("nan")).backward()
        optimizer.step()

    (step,) = recorded(script).steps
    assert not step.finite
    assert step.loss is not None
    assert math.isnan(step.loss)
    assert step.grad_norm is not None
    assert math.isnan(step.grad_norm)


def test_a_scheduler_changes_the_learning_rate(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
        scheduler = lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        for _ in range(4):
            train(model, optimizer, steps=1)
            scheduler.step()

    run = recorded(script)
    rates = [(value.step, value.value) for value in run.hyperparameters if value.name == "lr"]
    assert rates == [(0, 0.8), (2, 0.4)]
    events = [event for event in run.events_of("scheduler_step") if not event.detail["initial"]]
    assert [event.value for event in events] == [0.8, 0.4, 0.4, 0.2]
    assert {event.detail["type"] for event in events} == {"StepLR"}
    assert [event.location.source for event in events if event.location] == ["scheduler.step()"] * 4


def test_a_chain_of_schedulers_is_one_step(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
        warmup = lr_scheduler.LinearLR(optimizer, total_iters=2)
        scheduler = lr_scheduler.SequentialLR(optimizer, [warmup, lr_scheduler.ExponentialLR(optimizer, 0.9)], milestones=[2])
        for _ in range(3):
            train(model, optimizer, steps=1)
            scheduler.step()

    events = [event for event in recorded(script).events_of("scheduler_step") if not event.detail["initial"]]
    assert [event.detail["type"] for event in events] == ["SequentialLR"] * 3


def test_plateau_scheduler(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
        scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        for metric in (1.0, torch.tensor(2.0), float("nan")):
            train(model, optimizer, steps=1)
            scheduler.step(metric)

    events = [event for event in recorded(script).events_of("scheduler_step") if not event.detail["initial"]]
    assert [event.value for event in events] == pytest.approx([0.8, 0.08, 0.008])
    assert [(event.detail["mode"], event.detail["measure"]) for event in events] == [("min", 1.0), ("min", 2.0), ("min", None)]


def test_several_optimizers_in_turn(recorded: Recorded) -> None:
    def script() -> None:
        generator, critic = nn.Linear(2, 4), nn.Linear(4, 1)
        for_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
        for_critic = torch.optim.SGD(critic.parameters(), lr=1e-2)
        for _ in range(2):
            for_critic.zero_grad()
            critic(generator(torch.randn(3, 2)).detach()).mean().backward()
            for_critic.step()
            for_generator.zero_grad()
            (-critic(generator(torch.randn(3, 2))).mean()).backward()
            for_generator.step()

    run = recorded(script)
    types = {key: optimizer.type for key, optimizer in run.optimizers.items()}
    assert [types[step.optimizer or 0] for step in run.steps] == ["SGD", "Adam", "SGD", "Adam"]
    assert [step.backwards for step in run.steps] == [1, 1, 1, 1]
    assert [step.cleared for step in run.steps] == [None, None, True, True]


def test_two_optimizers_after_one_backward_pass(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        first = torch.optim.SGD(model[0].parameters(), lr=0.1)
        second = torch.optim.Adam(model[2].parameters(), lr=0.1)
        for x, y in batches(2):
            first.zero_grad()
            second.zero_grad()
            F.cross_entropy(model(x), y).backward()
            first.step()
            second.step()

    run = recorded(script)
    assert [step.backwards for step in run.steps] == [1, 0, 1, 0]
    assert [step.cleared for step in run.steps] == [None, None, True, True]
    assert [step.with_gradient for step in run.steps] == [2, 2, 2, 2]


def test_gradient_accumulation(recorded: Recorded) -> None:
    losses: list[float] = []

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for number, (x, y) in enumerate(batches(6)):
            loss = F.cross_entropy(model(x), y) / 3
            loss.backward()
            losses.append(loss.item())
            if number % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()

    run = recorded(script)
    assert [step.backwards for step in run.steps] == [3, 3]
    assert [step.cleared for step in run.steps] == [None, True]
    assert [step.loss for step in run.steps] == [losses[2], losses[5]]
    assert [event.step for event in run.events_of("backward")] == [0, 0, 0, 1, 1, 1]


def test_training_without_an_optimizer(recorded: Recorded) -> None:
    losses: list[float] = []

    def script() -> None:
        weight = torch.zeros(4, 3, requires_grad=True)
        for x, y in batches(4):
            loss = F.cross_entropy(x @ weight, y)
            loss.backward()
            losses.append(loss.item())
            with torch.no_grad():
                assert weight.grad is not None
                weight -= 0.1 * weight.grad
                weight.grad = None

    run = recorded(script)
    assert [step.loss for step in run.steps] == losses
    assert [step.backwards for step in run.steps] == [1] * 4
    assert [step.optimizer for step in run.steps] == [None] * 4
    assert [step.seq for step in run.steps] == [event.seq for event in run.events_of("backward")]


def test_a_model_trained_by_hand_is_looked_at(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        for x, y in batches(3):
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(0.1 * parameter.grad)  # type: ignore[operator]

    run = recorded(script)
    assert len(run.steps) == 3
    weight = next(parameter.id for parameter in run.parameters.values() if parameter.path == "0.weight")
    states = run.snapshots[weight]
    assert [state.step for state in states] == [-1, 0, 1, 2, 3]
    assert [state.gradient for state in states] == [None, "value", "value", "value", None]
    assert len({state.digest for state in states[1:]}) == 4


@pytest.mark.parametrize("passes", [10, 80])
def test_an_optimizer_that_is_never_stepped(recorded: Recorded, passes: int) -> None:
    """The loop that forgets `optimizer.step()`: its backward passes are there, and steps to look at."""

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(passes):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()

    run = recorded(script)
    assert len(run.events_of("backward")) == passes
    assert len(run.events_of("zero_grad")) == passes
    assert run.events_of("optimizer_step") == []
    assert [optimizer.type for optimizer in run.optimizers.values()] == ["SGD"]
    assert run.steps, "where no optimizer ever steps, steps end with a backward pass"
    assert sum(step.backwards for step in run.steps) == passes


def test_a_second_backward_pass_through_the_same_graph_fails_as_ever(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        loss = model(torch.randn(2, 4)).pow(2).sum()
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()

    recorded(script)


def test_gradients_of_gradients_are_noted(recorded: Recorded) -> None:
    def script() -> None:
        critic = nn.Linear(4, 1)
        x = torch.randn(3, 4, requires_grad=True)
        (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        slope.pow(2).sum().backward()

    run = recorded(script)
    (event,) = run.events_of("gradient_of_gradient")
    (derived,) = [op for op in run.ops if op.name == "sum" and op.seq < event.seq]
    assert event.detail == {"create_graph": True, "of": f"o{derived.seq}"}
    (square,) = [op for op in run.ops if op.name == "pow"]
    assert square.inputs == [f"g{event.seq}"]
    assert len(run.steps) == 1


def test_gradients_of_gradients_take_their_arguments_by_position_too(recorded: Recorded) -> None:
    def script() -> None:
        critic = nn.Linear(4, 1)
        x = torch.randn(3, 4, requires_grad=True)
        score = critic(x)
        (slope,) = torch.autograd.grad(score, x, torch.ones_like(score), True, True)
        slope.pow(2).sum().backward()

    run = recorded(script)
    (event,) = run.events_of("gradient_of_gradient")
    origins = {f"o{op.seq}": op.name for op in run.ops}
    assert event.detail["create_graph"]
    assert origins[event.detail["of"]] == "linear"
    assert origins[event.detail["weighted_by"]] == "ones_like"


def test_events_have_their_lines(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        loss = model(torch.randn(2, 4)).sum()
        loss.backward()
        optimizer.step()

    run = recorded(script)
    lines = [(event.kind, event.location.source) for event in run.events if event.location and event.kind != "seed"]
    assert lines == [
        ("zero_grad", "optimizer.zero_grad()"), ("backward", "loss.backward()"), ("optimizer_step", "optimizer.step()"),
    ]  # fmt: skip
    assert run.steps[0].seq == run.events_of("optimizer_step")[0].seq


def test_a_step_inside_of_an_optimizer_of_optimizers(recorded: Recorded) -> None:
    """A wrapper optimizer that steps another one inside of its own step ends one training step."""

    class Lookahead(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            self.inner = inner
            super().__init__(inner.param_groups, {})

        def step(self, closure: object = None) -> None:  # type: ignore[override]  # noqa: ARG002
            self.inner.step()

    def script() -> None:
        model = small_net()
        train(model, Lookahead(torch.optim.SGD(model.parameters(), lr=0.1)), steps=3)

    assert len(recorded(script).steps) == 3


def test_seeds_are_noted(recorded: Recorded) -> None:
    def script() -> Tensor:
        torch.manual_seed(1234)
        return torch.randn(1)

    (event,) = recorded(script).events_of("seed")
    assert event.detail == {"library": "torch", "seed": 1234}
    assert event.location is not None
    assert event.location.source == "torch.manual_seed(1234)"


def test_a_script_that_fails_inside_its_first_step_has_no_step() -> None:
    """The backward pass is there, but nothing that a verdict could rest on."""

    def script() -> None:
        model = small_net()
        x, y = next(batches(1))
        torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
        F.cross_entropy(model(x), y).backward()
        raise RuntimeError("between backward and step")

    recording = record(name="failed")
    with pytest.raises(RuntimeError, match="between"), recording as made:
        script()
    run = Run(made.directory)
    assert run.steps == []
    assert len(run.events_of("backward")) == 1
    run.close()
