"""Layers that stay at their random initial values because they are frozen, and frozen ones that move all the same."""

from __future__ import annotations

import math
from itertools import pairwise

from trueline.model import Evidence, Parameter
from trueline.views.dataflow import Trace, parent_of
from trueline.views.gradient_cuts import scores_layer, takes_trained_values
from trueline.views.loss_patterns import Fault
from trueline.views.parameters import ParameterHistory, listed
from trueline.views.words import either

LAYERS = frozenset({"linear", "conv", "recurrent", "attention"})
# Below these shares of trainable values in a root most of whose layers are frozen, training looks like that of prompts or
# adapters in a finished network; a frozen output layer is tolerated only with next to nothing trainable.
ADAPTER_SHARE = 0.05
SMALL_SHARE = 0.2


def frozen_at_random(history: ParameterHistory, trace: Trace) -> Fault | None:
    """A frozen layer behind trained ones that holds what its random initialisation put there in this run."""
    run = history.run
    if not any("value" in history.gradients(parameter) and history.is_held(parameter) for parameter in history.weights):
        return None
    others = {
        snapshot.digest
        for parameter in history.weights
        if not history.always_frozen(parameter)
        for snapshot in history.snapshots(parameter)
    }
    last_layer = scores_layer(trace)
    adapters = _adapters(history)
    found = [
        parameter
        for parameter in history.weights
        if _is_frozen_random_layer(history, parameter, others)
        and takes_trained_values(trace, parameter)
        and not _beside_trainable(history, parameter)
        and not any(run.modules[module].root == parameter.root for module in adapters)
        and not _is_adapter_training(history, parameter.root, head=parameter.id in last_layer)
    ]
    if not found:
        return None
    heads = [parameter for parameter in found if parameter.id in last_layer]
    chosen = heads or found
    module = run.modules[chosen[0].module]
    where = module.built or module.called
    what = "the output layer" if heads else "a layer behind trained ones"
    return Fault(
        f"{listed(run.modules[parameter.module].name for parameter in chosen)}: {what} is frozen at its random initial "
        "values, while the layers "
        "before it train.",
        0.92 if heads else 0.75,
        [
            Evidence(
                f"{parameter.name} {list(parameter.shape)} is not trainable, was initialised at random at "
                f"{parameter.initialised}, was never "
                f"loaded, and is unchanged over {len(history.snapshots(parameter))} snapshots.",
                {"parameter": parameter.name, "snapshots": len(history.snapshots(parameter)), "loaded": False},
                location=parameter.initialised,
            )
            for parameter in chosen[:8]
        ],
        None if where is None else where.of_module(module.name),
        f"Let it learn: for p in {module.name}.{either(run, pytorch='parameters()', mindspore='get_parameters()')}: "
        "p.requires_grad = True, before the optimizer is built; or load its weights first.",
    )


def _is_frozen_random_layer(history: ParameterHistory, parameter: Parameter, others: set[str]) -> bool:
    """Frozen, of a kind that must learn, with the content of a random initialisation that is nobody else's and never moved."""
    snapshots = history.snapshots(parameter)
    return (
        len(parameter.shape) > 1
        and history.run.modules[parameter.module].kind in LAYERS
        and history.always_frozen(parameter)
        and history.never_moved(parameter)
        and history.is_fresh(parameter)
        and bool(snapshots[0].row_spread or parameter.shape[0] == 1)
        and snapshots[0].digest not in others
    )


def _beside_trainable(history: ParameterHistory, parameter: Parameter) -> bool:
    """Whether trainable parameters stand beside it in the same module, or directly in the module around it."""
    run = history.run
    owners = {parameter.module}
    parent = parent_of(run, parameter.module)
    if parent is not None and run.modules[parent].path and run.modules[parent].kind != "container":
        owners.add(parent)
    return any(other.module in owners and history.always_trainable(other) for other in history.weights)


def _adapters(history: ParameterHistory) -> set[int]:
    """Modules that hold a frozen matrix and, beside it, two trainable ones whose product has its shape and a lower rank."""
    frozen: dict[int, list[tuple[int, int]]] = {}
    trainable: dict[int, list[tuple[int, int]]] = {}
    for parameter in history.weights:
        if len(parameter.shape) < 2:
            continue
        shape = (parameter.shape[0], math.prod(parameter.shape[1:]))
        kept = frozen if history.always_frozen(parameter) else trainable
        parent = parent_of(history.run, parameter.module)
        kept.setdefault(parameter.module, []).append(shape)
        if parent is not None and history.run.modules[parent].path:
            kept.setdefault(parent, []).append(shape)
    return {module for module, shapes in frozen.items() if any(_factors(shape, trainable.get(module, [])) for shape in shapes)}


def _factors(shape: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    """Whether two of the matrices, either way round, multiply to one of this shape through a smaller rank."""
    for first in others:
        for second in others:
            for rank in set(first) & set(second):
                outer, inner = sum(first) - rank, sum(second) - rank
                if first is not second and {outer, inner} == set(shape) and rank < min(shape):
                    return True
    return False


def _is_adapter_training(history: ParameterHistory, root: int, *, head: bool) -> bool:
    """Whether a root looks like a finished network in which little is trained, such as small layers between frozen ones."""
    own = [parameter for parameter in history.weights if parameter.root == root and len(parameter.shape) > 1]
    trainable = [parameter for parameter in own if history.always_trainable(parameter)]
    share = sum(math.prod(p.shape) for p in trainable) / max(sum(math.prod(p.shape) for p in own), 1)
    return 2 * len(trainable) <= len(own) and share < (ADAPTER_SHARE if head else SMALL_SHARE)


def moving_while_frozen(history: ParameterHistory) -> Fault | None:
    """A parameter that is frozen, held by an optimizer, and changes: old gradients, momentum or weight decay move it."""
    run = history.run
    found: list[tuple[Parameter, int]] = []
    for parameter in history.weights:
        if parameter.loaded is not None:
            continue
        snapshots = history.snapshots(parameter)
        moved = [
            later.step
            for before, later in pairwise(snapshots)
            if not before.trainable
            and not later.trainable
            and before.optimizer is not None
            and before.gradient in ("zero", "value")
            and before.digest != later.digest
        ]
        if moved:
            found.append((parameter, moved[0]))
    if not found:
        return None
    parameter, step = found[0]
    places = history.held.get(parameter.id, [])
    optimizer = run.optimizers.get(places[0].optimizer) if places else None
    where = optimizer.built if optimizer is not None else None
    name = run.modules[parameter.module].name
    return Fault(
        f"{listed(p.name for p, _ in found)} {'is' if len(found) == 1 else 'are'} frozen and still changed by the "
        "optimizer, which applies an old "
        "gradient, momentum or weight decay.",
        0.85,
        [
            Evidence(f"{p.name} is not trainable and its content changed by step {at}.", {"parameter": p.name}, at)
            for p, at in found[:8]
        ],
        None if where is None else where.of_module(name),
        either(
            run,
            pytorch="Build the optimizer from the trainable parameters only ([p for p in model.parameters() if "
            f"p.requires_grad]), or set p.grad = None when freezing (seen from step {step} on).",
            mindspore="Set requires_grad = False before the optimizer is built, and build it from model.trainable_params() "
            f"(seen from step {step} on).",
        ),
    )
