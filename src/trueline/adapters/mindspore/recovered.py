"""Gradients of compiled steps, told by what the step did to the optimizer's own memory of them.

Momentum and Adam keep a running mean of the gradients that they are given: m' = keep * m + take * g. Read before and after a
step it tells g, to about the precision of float32; plain SGD tells it by what it subtracts from the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from mindspore import Parameter, nn
from mindspore.experimental import optim
from numpy.typing import NDArray

from trueline.adapters.mindspore.tensors import array_of

# Models with more values than this are not copied in the middle of a step.
_MOST_VALUES = 1 << 26


class Memory(msgspec.Struct, frozen=True):
    """What an optimizer remembers of one parameter's gradients, before the step: `tensor` becomes keep * before + take * g."""

    parameter: Parameter
    tensor: Parameter
    before: NDArray[Any]
    keep: float
    take: float
    decay: float
    weights: NDArray[Any] | None


def memories_of(optimizer: Any, parameters: list[Parameter], rates: list[float | None], decays: list[float]) -> list[Memory]:
    """What to compare after the step; empty for optimizers whose memory does not tell. `rates` and `decays` are the learning
    rate and the weight decay of each parameter, as far as they are known."""
    if sum(parameter.size for parameter in parameters) > _MOST_VALUES:
        return []
    found = []
    # What is added to the gradients before they are remembered.
    added = isinstance(optimizer, nn.Momentum | nn.SGD | nn.Adam) and getattr(optimizer, "loss_scale", 1.0) == 1.0
    for place, (parameter, rate, decay) in enumerate(zip(parameters, rates, decays, strict=True)):
        held = _held(optimizer, place, parameter, rate)
        if held is None:
            continue
        tensor, keep, take = held
        own_decay = decay if added else 0.0
        weights = array_of(parameter).copy() if own_decay else None
        found.append(Memory(parameter, tensor, array_of(tensor).copy(), keep, take, own_decay, weights))
    return found


def gradients_in(memories: list[Memory]) -> Iterator[tuple[Parameter, NDArray[Any]]]:
    """The gradients of the step that is over."""
    for memory in memories:
        with np.errstate(all="ignore"):
            gradient = (array_of(memory.tensor) - memory.keep * memory.before) / memory.take
            if memory.weights is not None:
                gradient -= memory.decay * memory.weights
        yield memory.parameter, gradient.astype(np.float32, copy=False)


def _held(optimizer: Any, place: int, parameter: Parameter, rate: float | None) -> tuple[Parameter, float, float] | None:
    if isinstance(optimizer, nn.Momentum):
        return optimizer.moments[place], _number(optimizer.momentum), 1.0
    if isinstance(optimizer, nn.SGD):
        momentum = _number(optimizer.momentum)
        if momentum > 0.0:
            first = _number(optimizer.stat[place]) > 0.0
            return optimizer.accum[place], 0.0 if first else momentum, 1.0 if first else 1.0 - _number(optimizer.dampening)
        return (parameter, 1.0, -rate) if rate else None
    if isinstance(optimizer, nn.Adam | nn.LazyAdam | nn.AdaMax):
        beta = _number(optimizer.beta1)
        return optimizer.moment1[place], beta, 1.0 - beta
    if isinstance(optimizer, nn.AdamWeightDecay | nn.Lamb):
        beta = _number(optimizer.beta1)
        return optimizer.moments1[place], beta, 1.0 - beta
    if isinstance(optimizer, optim.Adam | optim.AdamW) and len(optimizer.param_groups) == 1:
        beta = float(optimizer.param_groups[0]["betas"][0])
        return optimizer.exp_avg[place], beta, 1.0 - beta
    return None


def _number(value: Any) -> float:
    """Of a number, or a parameter that holds one."""
    return float(value) if isinstance(value, int | float) else float(np.ravel(array_of(value))[0])
