"""Hyper-parameters of optimizers by group, as numbers. Constants are read once: reading a tensor waits for the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn

# Of MindSpore's own names to those that checks know.
_NAMES = {"momentum": "momentum", "eps": "eps", "dampening": "dampening", "use_nesterov": "nesterov", "nesterov": "nesterov"}
# Schedules given as cells are computed by the device: asked for on sampled steps and on every so many others.
_SCHEDULE_EVERY = 8
_CONSTANT_EVERY = 8


def parameters_of(optimizer: Any) -> list[Parameter]:
    """The parameters in the order in which the optimizer expects their gradients."""
    return list(optimizer.parameters)


def groups_of(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Groups:
    if isinstance(optimizer, nn.Optimizer):
        given = dict(zip(("learning_rate", "parameters", "weight_decay", "loss_scale"), args, strict=False)) | kwargs
        return Groups(_described(given))
    return _OfParamGroups(optimizer)


def _described(given: dict[str, Any]) -> list[tuple[list[Any], dict[str, Any]]]:
    """The groups as they were given: their parameters, and their learning rate and weight decay."""
    shared = {"lr": given.get("learning_rate"), "weight_decay": given.get("weight_decay", 0.0)}
    parameters = given.get("parameters")
    groups = [part for part in parameters if isinstance(part, Mapping)] if isinstance(parameters, list | tuple) else []
    told = []
    for group in groups:
        if "order_params" not in group:
            own = {"lr": group.get("lr", shared["lr"]), "weight_decay": group.get("weight_decay", shared["weight_decay"])}
            told.append((list(group["params"]), own))
    # Without groups, MindSpore leaves parameters of these names out of the decay.
    return told or [([], {**shared, "undecayed": ["beta", "gamma"]})]


class Groups:
    """The groups of an `nn.Optimizer`."""

    def __init__(self, given: list[tuple[list[Any], dict[str, Any]]]) -> None:
        self.of_parameter = {id(parameter): place for place, (parameters, _) in enumerate(given) for parameter in parameters}
        self._given = [settings for _, settings in given]
        self._constants: dict[str, Any] | None = None
        self._rates: dict[int, Any] = {}

    @property
    def given_rates(self) -> list[Any]:
        """The learning rate of each group as it was given: a number, a list, a tensor, a cell."""
        return [settings["lr"] for settings in self._given]

    def at_step(self, optimizer: Any, step: int, *, sampled: bool) -> list[dict[str, Any]]:
        """The settings of each group that are known at this step of the optimizer; what is not told is as before."""
        if self._constants is None:
            self._constants = _constants_of(optimizer)
            sampled = True
        found = []
        for place, given in enumerate(self._given):
            settings: dict[str, Any] = {} if not sampled else dict(self._constants)
            decay = given["weight_decay"]
            if sampled and isinstance(decay, int | float):
                settings["weight_decay"] = float(decay)
                if decay and "undecayed" in given:
                    settings["undecayed"] = given["undecayed"]
            rate = self._rate(optimizer, place, given["lr"], step, sampled=sampled)
            if rate is not None:
                settings["lr"] = rate
            found.append(settings)
        return found

    def _rate(self, optimizer: Any, place: int, given: Any, step: int, *, sampled: bool) -> float | None:
        if isinstance(given, nn.Cell):
            if sampled or step % _SCHEDULE_EVERY == 0:
                return number_of(given.construct(Tensor([step], ms.int32)))
            return None
        if isinstance(given, list | tuple | np.ndarray) or (isinstance(given, Tensor) and len(given.shape) == 1):
            known = self._rates.get(place)
            if known is None:
                values = given.asnumpy() if isinstance(given, Tensor) else np.asarray(given)
                known = self._rates[place] = [float(str(np.float32(value))) for value in values]
            return known[min(step, len(known) - 1)] if known else None
        # A constant, which the script may still assign something else to.
        if sampled or step % _CONSTANT_EVERY == 0:
            return number_of(self._current_rate(optimizer, place))
        return None

    def _current_rate(self, optimizer: Any, place: int) -> Any:
        rate = optimizer.learning_rate
        if isinstance(rate, Tensor) or not isinstance(rate, tuple | list):
            return rate
        # One per parameter.
        groups = (self.of_parameter.get(id(parameter)) for parameter in optimizer.parameters)
        return next((one for one, group in zip(rate, groups, strict=False) if group == place), None)


class _OfParamGroups(Groups):
    """The groups of an optimizer of `mint.optim` or `experimental.optim`, which has them as dictionaries."""

    def __init__(self, optimizer: Any) -> None:
        places = enumerate(optimizer.param_groups)
        self.of_parameter = {id(parameter): place for place, group in places for parameter in group["params"]}
        self._given = []

    def at_step(self, optimizer: Any, step: int, *, sampled: bool) -> list[dict[str, Any]]:
        found = []
        for group in optimizer.param_groups:
            settings: dict[str, Any] = {}
            for name, value in group.items():
                if isinstance(value, bool | int | float | str) or (
                    isinstance(value, tuple) and all(isinstance(part, int | float) for part in value)
                ):
                    settings[name] = value
                elif name == "lr" and isinstance(value, Tensor) and (sampled or step % _CONSTANT_EVERY == 0):
                    settings[name] = number_of(value)
            found.append(settings)
        return found


def _constants_of(optimizer: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, neutral in _NAMES.items():
        value = getattr(optimizer, name, None)
        if isinstance(value, bool):
            settings[neutral] = value
        elif isinstance(value, int | float | Tensor) and (number := number_of(value)) is not None:
            settings[neutral] = number
    betas = [number_of(getattr(optimizer, name, None)) for name in ("beta1", "beta2")]
    if None not in betas:
        settings["betas"] = betas
    if getattr(optimizer, "loss_scale", 1.0) != 1.0:
        settings["loss_scale"] = float(optimizer.loss_scale)
    return settings


def number_of(value: Any) -> float | None:
    """The shortest decimal number that is this float32: 0.1, not 0.10000000149."""
    if isinstance(value, Tensor):
        if value.size != 1:
            return None
        value = value.asnumpy().reshape(-1)[0]
    return float(str(np.float32(value))) if isinstance(value, int | float | np.number) else None
