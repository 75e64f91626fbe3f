"""Gradients of compiled steps: the same as in PyNative mode, by what the optimizer remembers of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.experimental import optim

from tests.adapters.mindspore.conftest import Recorded
from tests.adapters.mindspore.loops import SmallNet, train
from trueline.store import Run

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "Momentum": lambda parameters: nn.Momentum(parameters, 0.05, 0.9),
    "Momentum with decay": lambda parameters: nn.Momentum(parameters, 0.05, 0.9, weight_decay=0.1, use_nesterov=True),
    "SGD": lambda parameters: nn.SGD(parameters, 0.05, weight_decay=0.01),
    "SGD with momentum": lambda parameters: nn.SGD(parameters, 0.05, momentum=0.9, dampening=0.5),
    "Adam": lambda parameters: nn.Adam(parameters, 0.01, beta1=0.8),
    "AdamWeightDecay": lambda parameters: nn.AdamWeightDecay(parameters, 0.01, weight_decay=0.1),
    "experimental AdamW": lambda parameters: optim.AdamW(parameters, lr=0.01),
}


def gradients(run: Run) -> dict[tuple[int, str], tuple[float, float, float]]:
    paths = {number: parameter.path for number, parameter in run.parameters.items()}
    return {(one.step, paths[one.subject]): (one.min, one.max, one.l2) for one in run.stats("gradient")}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_are_those_of_pynative_mode(name: str, recorded: Recorded) -> None:
    def script(*, compiled: bool) -> None:
        ms.set_seed(3)
        model = SmallNet()
        train(model, OPTIMIZERS[name](model.trainable_params()), steps=3, compiled=compiled)

    seen = recorded(lambda: script(compiled=False))
    told = recorded(lambda: script(compiled=True))
    expected, found = gradients(seen), gradients(told)
    assert len(expected) == 12
    assert found.keys() == expected.keys()
    for key, numbers in expected.items():
        np.testing.assert_allclose(found[key], numbers, rtol=1e-3, atol=1e-5, err_msg=str(key))
    norms = [step.grad_norm for step in told.steps]
    np.testing.assert_allclose(norms, [step.grad_norm for step in seen.steps], rtol=1e-3)
    assert "gradients" in told.unseen


def test_an_optimizer_that_does_not_tell(recorded: Recorded) -> None:
    def script() -> None:
        model = SmallNet()
        train(model, nn.RMSProp(model.trainable_params(), 0.01), steps=3, compiled=True)

    run = recorded(script)
    assert not run.stats("gradient")
    assert [step.grad_norm for step in run.steps] == [None] * 3
