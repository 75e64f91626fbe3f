"""What a run tells of its parameters over time: held by an optimizer, with or without gradient, moved or not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from trueline.model import Optimizer, OptimizerParameter, Parameter, Snapshot
from trueline.store import Run


class ParameterHistory:
    """The snapshots and optimizers of every parameter of a run; tied parameters are told once, under the first of them."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def first_of(self, parameter: int) -> int:
        """The id under which a parameter that stands at several places was seen first."""
        same = self.run.parameters[parameter].same_as
        return parameter if same is None else same

    @cached_property
    def weights(self) -> list[Parameter]:
        """Parameters proper, without buffers and without second names of the same tensor."""
        return [parameter for parameter in self.run.parameters.values() if not parameter.buffer and parameter.same_as is None]

    def snapshots(self, parameter: Parameter) -> list[Snapshot]:
        return self.run.snapshots.get(parameter.id, [])

    @cached_property
    def held(self) -> dict[int, list[OptimizerParameter]]:
        """By parameter: its places in optimizers at the end of the run."""
        found: dict[int, list[OptimizerParameter]] = {}
        for place in self.run.optimizer_parameters:
            if place.parameter is not None and place.parameter in self.run.parameters:
                found.setdefault(self.first_of(place.parameter), []).append(place)
        return found

    def is_held(self, parameter: Parameter) -> bool:
        """Whether any optimizer held it at any time that was looked at."""
        return parameter.id in self.held or any(snapshot.optimizer is not None for snapshot in self.snapshots(parameter))

    def gradients(self, parameter: Parameter) -> list[str]:
        """What its gradient was at each sampled step: 'none', 'zero' or 'value'."""
        return [snapshot.gradient for snapshot in self.snapshots(parameter) if snapshot.gradient is not None]

    def never_moved(self, parameter: Parameter) -> bool:
        """Whether its content is the same in all snapshots."""
        return len({snapshot.digest for snapshot in self.snapshots(parameter)}) == 1

    def always_frozen(self, parameter: Parameter) -> bool:
        snapshots = self.snapshots(parameter)
        return bool(snapshots) and not any(snapshot.trainable for snapshot in snapshots)

    def always_trainable(self, parameter: Parameter) -> bool:
        snapshots = self.snapshots(parameter)
        return bool(snapshots) and all(snapshot.trainable for snapshot in snapshots)

    def is_fresh(self, parameter: Parameter) -> bool:
        """Whether its content was made in this run: written by an initialisation, not loaded and not of unknown origin.

        Ready-made layers that no initialisation was seen to fill were filled from elsewhere (a pretrained model, a copy).
        """
        if parameter.loaded is not None:
            return False
        if parameter.initialised is None:
            return self.run.modules[parameter.module].kind == "other"
        return "copy_" not in (parameter.initialised.source or "")

    @cached_property
    def trained_roots(self) -> set[int]:
        """Roots of which at least one parameter had a gradient other than zero."""
        return {parameter.root for parameter in self.weights if "value" in self.gradients(parameter)}

    @cached_property
    def optimizer_steps(self) -> int:
        return sum(step.optimizer is not None for step in self.run.steps)

    def busiest_optimizer(self) -> Optimizer | None:
        """The optimizer that stepped most often."""
        counts: dict[int, int] = {}
        for step in self.run.steps:
            if step.optimizer is not None:
                counts[step.optimizer] = counts.get(step.optimizer, 0) + 1
        return self.run.optimizers.get(max(counts, key=lambda key: counts[key])) if counts else None


def shared_module(run: Run, parameters: Iterable[Parameter]) -> str | None:
    """The name of the smallest module that holds all the given parameters; None when they lie in different roots."""
    parameters = list(parameters)
    roots = {parameter.root for parameter in parameters}
    if len(roots) != 1:
        return None
    paths = [run.modules[parameter.module].path.split(".") for parameter in parameters]
    common: list[str] = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) != 1:
            break
        common.append(parts[0])
    path = ".".join(common)
    root = roots.pop()
    return next((module.name for module in run.modules.values() if module.root == root and module.path == path), None)


def listed(names: Iterable[str], most: int = 4) -> str:
    """Names in one phrase, the rest counted."""
    names = list(names)
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def name_of_optimizer(run: Run, number: int) -> str:
    """As a sentence calls it."""
    optimizer = run.optimizers[number]
    return f"the {optimizer.type} of {optimizer.built or 'an unknown line'}"
