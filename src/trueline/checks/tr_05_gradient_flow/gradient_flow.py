"""How gradients and signals go through the layers of a network: sizes along its depth, dead units, saturated activations."""

from __future__ import annotations

import math
from collections import defaultdict

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import Location, Module, Parameter, TensorStat
from trueline.store import Run
from trueline.views.curve import Curve
from trueline.views.update_sizes import weight_matrices

_LAYERS = frozenset({"linear", "conv"})
# The derivative of a saturating function at its steepest point.
_STEEPEST = {"sigmoid": 0.25, "tanh": 1.0}


class Layer(msgspec.Struct, frozen=True):
    """A linear or convolution layer and its weight."""

    module: Module
    weight: Parameter


class Saturation(msgspec.Struct, frozen=True):
    """A saturating activation: the mean derivative at the sampled steps, as a share of the steepest one."""

    name: str
    location: Location | None
    shares: list[float]


class Flow:
    """The layers that one optimizer trains, in the order of their registration, and what was measured of them."""

    def __init__(self, run: Run, curve: Curve) -> None:
        self.run = run
        self.curve = curve
        mine = {step.id for step in curve.steps}
        matrices = weight_matrices(run, curve.optimizer)
        self.layers = [
            Layer(run.modules[weight.module], weight) for weight in matrices if run.modules[weight.module].kind in _LAYERS
        ]
        self.recurrent = [
            Layer(run.modules[weight.module], weight) for weight in matrices if run.modules[weight.module].kind == "recurrent"
        ]
        self.gradients = _by_subject(run, "gradient", mine)
        self.weights = _by_subject(run, "parameter", mine | {-1})
        self.outputs = _by_subject(run, "output", mine)

    @property
    def late_steps(self) -> list[int]:
        """The sampled steps of the second half of the run, at least the last three."""
        steps = sorted({step for stats in self.gradients.values() for step in stats})
        middle = self.curve.steps[len(self.curve.steps) // 2].id
        late = [step for step in steps if step >= middle]
        return late if len(late) >= 2 else steps[-3:]

    def relative_gradients(self, step: int) -> NDArray[np.float64]:
        """The length of each layer's gradient over the length of its weight; NaN where it is not known."""
        found = []
        for layer in self.layers:
            gradient = self.gradients.get(layer.weight.id, {}).get(step)
            weight = self.weights.get(layer.weight.id, {}).get(step)
            known = gradient is not None and weight is not None and gradient.l2 is not None and weight.l2
            found.append(
                gradient.l2 / weight.l2 if known and gradient and weight and weight.l2 and gradient.l2 is not None else math.nan
            )
        return np.array(found)

    def dead_shares(self, layer: Layer) -> list[float]:
        """The share of units without any gradient, at the late sampled steps."""
        stats = self.gradients.get(layer.weight.id, {})
        return [stat.dead for step in self.late_steps if (stat := stats.get(step)) is not None and stat.dead is not None]

    def signal_sizes(self, step: int) -> NDArray[np.float64]:
        """The root mean square of each layer's output; NaN where it is not known."""
        return np.array([_size(self.outputs.get(layer.module.id, {}).get(step)) for layer in self.layers])

    def size_of_output(self, layer: Layer, step: int) -> float:
        return _size(self.outputs.get(layer.module.id, {}).get(step))

    def saturations(self) -> list[Saturation]:
        """The saturating activations between layers: modules by their outputs, functions by what goes into them."""
        last = max((layer.module.id for layer in self.layers), default=-1)
        found = []
        for module in self.run.modules.values():
            kind = module.type.lower()
            if kind in _STEEPEST and module.id < last and module.id in self.outputs:
                shares = [_share_of_output(kind, stat) for stat in self.outputs[module.id].values()]
                found.append(Saturation(module.name, module.built or module.called, [one for one in shares if one is not None]))
        return found + self._functional_saturations()

    def _functional_saturations(self) -> list[Saturation]:
        makers = {f"o{op.seq}": op.module for op in self.run.ops}
        by_id = {layer.module.id: layer for layer in self.layers[:-1]}
        found: dict[int, Saturation] = {}
        for op in self.run.ops:
            maker = makers.get(op.inputs[0]) if op.inputs else None
            inside = self.run.modules.get(op.module) if op.module is not None else None
            as_module = inside is not None and inside.type.lower() in _STEEPEST
            if op.name not in _STEEPEST or maker not in by_id or maker in found or maker is None or as_module:
                continue
            shares = [_share_of_input(op.name, stat) for stat in self.outputs.get(maker, {}).values()]
            found[maker] = Saturation(
                f"{op.name} after {by_id[maker].module.name}", op.location, [s for s in shares if s is not None]
            )
        return list(found.values())


def _by_subject(run: Run, role: str, steps: set[int]) -> dict[int, dict[int, TensorStat]]:
    found: dict[int, dict[int, TensorStat]] = defaultdict(dict)
    for stat in run.stats(role):
        if stat.step in steps and stat.position == 0:
            found[stat.subject][stat.step] = stat
    return dict(found)


def _size(stat: TensorStat | None) -> float:
    if stat is None or stat.mean is None or stat.std is None or stat.nan or stat.inf:
        return math.nan
    return math.hypot(stat.mean, stat.std)


def _share_of_output(kind: str, stat: TensorStat) -> float | None:
    """E[y - y²] for the sigmoid, E[1 - y²] for the hyperbolic tangent, from the mean and spread of y."""
    if stat.mean is None or stat.std is None:
        return None
    square = stat.mean**2 + stat.std**2
    derivative = stat.mean - square if kind == "sigmoid" else 1 - square
    return max(derivative, 0.0) / _STEEPEST[kind]


def _share_of_input(kind: str, stat: TensorStat) -> float | None:
    """The mean derivative over normally distributed inputs of this mean and spread."""
    if stat.mean is None or stat.std is None:
        return None
    x = stat.mean + stat.std * np.linspace(-4, 4, 401)
    density = np.exp(-0.5 * np.linspace(-4, 4, 401) ** 2)
    if kind == "tanh":
        derivative = 1 - np.tanh(x) ** 2
    else:
        y = 0.5 * (1 + np.tanh(x / 2))
        derivative = y * (1 - y)
    return float((derivative * density).sum() / density.sum()) / _STEEPEST[kind]
