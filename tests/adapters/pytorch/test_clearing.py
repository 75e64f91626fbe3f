"""Whether the gradients that a step used started from nothing: `Step.cleared`, for every way of clearing them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import batches, small_net

Clear = Callable[[nn.Module, torch.optim.Optimizer], None]


def by_hand(model: nn.Module, _: torch.optim.Optimizer) -> None:
    for parameter in model.parameters():
        parameter.grad = None


def zeroed_by_hand(model: nn.Module, _: torch.optim.Optimizer) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()


WAYS: dict[str, Clear] = {
    "set to none": lambda _, optimizer: optimizer.zero_grad(),
    "set to zero": lambda _, optimizer: optimizer.zero_grad(set_to_none=False),
    "model.zero_grad": lambda model, _: model.zero_grad(),
    "model.zero_grad to zero": lambda model, _: model.zero_grad(set_to_none=False),
    "grad = None by hand": by_hand,
    "grad.zero_() by hand": zeroed_by_hand,
}


def loop(clear: Clear, *, before: bool, steps: int = 4) -> Callable[[], None]:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(steps):
            if before:
                clear(model, optimizer)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            if not before:
                clear(model, optimizer)

    return script


@pytest.mark.parametrize("before", [True, False], ids=["before the backward pass", "after the step"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_clearing_is_seen(recorded: Recorded, way: str, before: bool) -> None:
    run = recorded(loop(WAYS[way], before=before))
    assert [step.cleared for step in run.steps] == [None, True, True, True]
    assert all(event.detail["carried"] == [] for event in run.events_of("backward") if event.step < 3)


def test_gradients_never_cleared(recorded: Recorded) -> None:
    run = recorded(loop(lambda _model, _optimizer: None, before=True, steps=6))
    assert [step.cleared for step in run.steps] == [None, False, False, False, False, False]
    carried = [event.detail["carried"] for event in run.events_of("backward")[:3]]
    assert carried == [[], [1], [1]]
    assert run.events_of("zero_grad") == []


def test_gradients_cleared_now_and_then(recorded: Recorded) -> None:
    """Cleared on even steps only: the odd ones carry over."""
    counter = iter(range(6))
    run = recorded(loop(lambda _, optimizer: optimizer.zero_grad() if next(counter) % 2 == 0 else None, before=True, steps=6))
    assert [step.cleared for step in run.steps] == [None, False, True, False, True, False]


def test_cleared_between_backward_and_step(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            F.cross_entropy(model(x), y).backward()
            optimizer.zero_grad()
            optimizer.step()

    run = recorded(script)
    assert [(step.with_gradient, step.without_gradient) for step in run.steps] == [(0, 4), (0, 4)]
    assert [step.grad_norm for step in run.steps] == [None, None]


def test_only_one_of_two_optimizers_is_cleared(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        first = torch.optim.SGD(model[0].parameters(), lr=0.1)
        second = torch.optim.SGD(model[2].parameters(), lr=0.1)
        for x, y in batches(3):
            first.zero_grad()
            F.cross_entropy(model(x), y).backward()
            first.step()
            second.step()

    cleared = [(step.optimizer, step.cleared) for step in recorded(script).steps]
    assert cleared == [(1, None), (2, None), (1, True), (2, False), (1, True), (2, False)]


def test_lbfgs_with_a_closure(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Linear(4, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
        x, y = torch.randn(8, 4), torch.randn(8, 1)

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)

    run = recorded(script)
    assert len(run.steps) == 3
    assert all(step.backwards >= 2 for step in run.steps[:1])
    assert False not in [step.cleared for step in run.steps], "the closure clears them"
    assert all(step.loss is not None for step in run.steps)


def test_sgd_with_a_closure(recorded: Recorded) -> None:
    """The closure runs inside of `step`: the gradients it makes are those of the step."""

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(3):

            def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)

    run = recorded(script)
    assert len(run.steps) == 3
    assert [step.backwards for step in run.steps] == [1, 1, 1]
    assert [step.without_gradient for step in run.steps] == [0, 0, 0]
    assert all(held.without_gradient == 0 for held in run.optimizer_parameters)
    assert all(step.grad_norm for step in run.steps)
