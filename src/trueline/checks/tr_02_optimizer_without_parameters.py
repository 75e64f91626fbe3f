"""Optimizer does not hold the model's parameters

## What it checks
Whether every trainable parameter that takes part in training and gets gradients is held by some optimizer, and whether the
tensors that the optimizers hold are those that the model uses.

## Why it hurts accuracy
A parameter in no optimizer keeps its initial value for ever. When the optimizer holds stale copies (the model was copied,
reloaded or a layer was replaced after the optimizer was built) part or all of the model does not train, while the script
runs without an error and the loss may even fall a little through the rest.

## Method
At the sampled steps the recorder notes for each parameter of every module that was called: its optimizer, whether it had a
gradient, and a hash of its content. A parameter is *left out* when it is trainable, had gradients other than zero, was in no
optimizer at any time, and has the same content in all snapshots over at least two optimizer steps. A tensor of an optimizer
is *stale* when it never had a gradient at any of the optimizer's steps and no module that was called owns it, or the module
that owns it is not the one that trains. Left-out parameters into which weights were loaded, or whose content no
initialisation of this run made, are taken for an intended frozen part and are not reported, unless stale tensors of the same
shapes prove that the optimizer was meant to hold them.

MindSpore gives gradients only of the parameters that are asked for, mostly the optimizer's: there a parameter counts as left
out when the traced operations lead from it to the loss; in compiled graphs, when it is a layer at the random values of this
run in a model whose other parameters move.

## Evidence
The parameters left out with their gradients and unchanged content; the stale tensors and their shapes; steps counted.

## Limits
A part that is left out on purpose without loaded weights (a random projection that is not marked as frozen) looks the same
and is reported; mark it with requires_grad_(False). At least two optimizer steps are needed.

## What to do
Build the optimizer after the model is complete (layers replaced, copied, moved), from all the parts that must train; add
parts built later with optimizer.add_param_group. In MindSpore: from `model.trainable_params()`, once everything is built.
"""

from __future__ import annotations

from collections import Counter

from trueline.checks.base import Item
from trueline.model import Evidence, Finding, Optimizer, OptimizerParameter, Parameter
from trueline.store import Run
from trueline.views.dataflow import Trace
from trueline.views.gradient_cuts import reaches_loss
from trueline.views.parameters import ParameterHistory, listed, shared_module
from trueline.views.words import either, words_of

ITEM = Item(__name__, __doc__)
NEEDS = ("freezing",)
RANK = 15
CONSEQUENCES = ("cg.02", "tr.05", "hp.01", "hp.02")
LEAST_STEPS = 2
_LAYERS = frozenset({"linear", "conv", "recurrent", "attention", "embedding"})


def conclude(run: Run) -> Finding:
    history = ParameterHistory(run)
    if not run.optimizers:
        return ITEM.not_applicable("The run built no optimizer: parameters are updated by hand or not at all.")
    if history.optimizer_steps < LEAST_STEPS:
        return ITEM.not_checked(f"{history.optimizer_steps} optimizer steps were recorded, and {LEAST_STEPS} are needed.")
    compiled = "gradients" in run.unseen
    if not compiled and not any(history.gradients(parameter) for parameter in history.weights):
        return ITEM.not_checked("no parameter of a called module was looked at during an optimizer step.")
    if not compiled and not history.trained_roots:
        return ITEM.not_checked("no parameter had a gradient other than zero, so that none shows which ones should be held.")
    trace = Trace(run)
    left_out = [parameter for parameter in history.weights if _is_left_out(history, trace, parameter)]
    stale = [place for place in run.optimizer_parameters if _is_stale(history, place)]
    replaced = _same_shapes(left_out, stale)
    if not replaced:
        left_out = [parameter for parameter in left_out if parameter.loaded is None]
        if not _made_in_this_run(run, history, left_out):
            left_out = []
    limits = _limits(run, history)
    if not left_out:
        return ITEM.no_problem(_healthy_summary(run, history), limits=limits, confidence=0.95)
    optimizer = _optimizer_to_blame(history, stale)
    part = shared_module(run, left_out)
    where = optimizer.built.of_module(part) if optimizer is not None and optimizer.built is not None else None
    return ITEM.problem(
        _summary(run, left_out, stale, optimizer, replaced=replaced),
        confidence=0.98 if replaced else 0.95 if stale else 0.75 if compiled else 0.9,
        evidence=_evidence(history, left_out, stale),
        fix=_fix(run, left_out, optimizer, part, replaced=bool(stale)),
        location=where,
        limits=limits,
    )


def _is_left_out(history: ParameterHistory, trace: Trace, parameter: Parameter) -> bool:
    return (
        history.always_trainable(parameter)
        and not history.is_held(parameter)
        and ("value" in history.gradients(parameter) or _would_learn(history, trace, parameter))
        and history.never_moved(parameter)
        and len(history.snapshots(parameter)) >= 2
    )


def _would_learn(history: ParameterHistory, trace: Trace, parameter: Parameter) -> bool:
    """Whether the loss depends on a parameter whose gradient nobody asked for: MindSpore's gradient functions give gradients of
    the parameters that they are told of, mostly those of the optimizer."""
    if history.run.framework != "mindspore":
        return False
    if "gradients" in history.run.unseen and not trace.ops:
        # Inside of a compiled graph: a layer at random values, in a model that trains, with no sign of freezing.
        kind = history.run.modules[parameter.module].kind
        return parameter.root in moving_roots(history) and kind in _LAYERS and history.is_fresh(parameter)
    return reaches_loss(trace, parameter)


def moving_roots(history: ParameterHistory) -> set[int]:
    """Roots of which a parameter that an optimizer holds has changed."""
    return {each.root for each in history.weights if history.is_held(each) and not history.never_moved(each)}


def _is_stale(history: ParameterHistory, place: OptimizerParameter) -> bool:
    """Held, stepped, and never with a gradient: owned by nobody, or by a module that did not take part in training."""
    if place.steps == 0 or place.without_gradient < place.steps:
        return False
    if place.parameter is None or place.parameter not in history.run.parameters:
        return True
    return history.run.parameters[place.parameter].root not in history.trained_roots


def _made_in_this_run(run: Run, history: ParameterHistory, left_out: list[Parameter]) -> bool:
    """Whether some of them were initialised here, so that leaving them out cannot be a pretrained part kept as it is."""
    fresh = [parameter for parameter in left_out if history.is_fresh(parameter)]
    layers = [parameter for parameter in left_out if run.modules[parameter.module].kind != "other"]
    return any(parameter in layers for parameter in fresh) if layers else bool(fresh)


def _same_shapes(left_out: list[Parameter], stale: list[OptimizerParameter]) -> bool:
    """Whether stale tensors stand in for at least half of the left-out parameters, shape by shape."""
    missing = Counter(parameter.shape for parameter in left_out)
    common = missing & Counter(place.shape for place in stale)
    return bool(left_out) and sum(common.values()) * 2 >= len(left_out)


def _optimizer_to_blame(history: ParameterHistory, stale: list[OptimizerParameter]) -> Optimizer | None:
    if stale:
        number, _ = Counter(place.optimizer for place in stale).most_common(1)[0]
        return history.run.optimizers.get(number)
    return history.busiest_optimizer()


def _summary(
    run: Run, left_out: list[Parameter], stale: list[OptimizerParameter], optimizer: Optimizer | None, *, replaced: bool
) -> str:
    kind = optimizer.type if optimizer is not None else "optimizer"
    names = listed(parameter.name for parameter in left_out)
    trained = any(place.parameter is not None and place.without_gradient < place.steps for place in run.optimizer_parameters)
    if replaced and not trained:
        return (
            f"The optimizer ({kind}) holds tensors that the model does not use: none of its {len(stale)} tensors ever "
            "had a gradient, while "
            f"the {len(left_out)} parameters that do get gradients are in no optimizer. Nothing trains."
        )
    if stale:
        return (
            f"{len(left_out)} parameters get gradients and are in no optimizer ({names}), while {len(stale)} tensors of "
            f"the {kind} never had "
            "a gradient: a part of the model was replaced after the optimizer was built."
        )
    got = (
        "get gradients" if any("value" in ParameterHistory(run).gradients(each) for each in left_out) else "take part in training"
    )
    return f"{len(left_out)} trainable parameters {got} and are in no optimizer: {names}. They keep their initial values."


def _evidence(history: ParameterHistory, left_out: list[Parameter], stale: list[OptimizerParameter]) -> list[Evidence]:
    sampled = max(len(history.gradients(parameter)) for parameter in left_out)
    modules = history.run.modules
    found = [
        Evidence(
            f"{len(left_out)} of {len(history.weights)} parameters belong to layers that are trained and had the same content "
            "before the first and "
            f"after the last of {history.optimizer_steps} optimizer steps.",
            {
                "parameters": [parameter.name for parameter in left_out[:20]],
                "count": len(left_out),
                "optimizer_steps": history.optimizer_steps,
                "sampled_steps": sampled,
            },
            location=modules[left_out[0].module].built,
        )
    ]
    if stale:
        found.append(
            Evidence(
                f"{len(stale)} tensors in optimizers had no gradient at any step.",
                {"shapes": [list(place.shape) for place in stale[:20]], "steps": max(place.steps for place in stale)},
            )
        )
    return found


def _fix(run: Run, left_out: list[Parameter], optimizer: Optimizer | None, part: str | None, *, replaced: bool) -> str:
    kind = optimizer.type if optimizer is not None else "the optimizer"
    where = f" at {optimizer.built}" if optimizer is not None and optimizer.built is not None else ""
    if replaced:
        return f"Build {kind}{where} after the model has its final parts, from the parameters of the model that is trained."
    what = part or listed(parameter.name for parameter in left_out)
    return (
        f"Add the parameters of {what} to {kind}{where} (for example {kind}({words_of(run).parameters}, …)), or mark them as "
        f"frozen on purpose with {either(run, pytorch='requires_grad_(False)', mindspore='requires_grad = False')}."
    )


def _healthy_summary(run: Run, history: ParameterHistory) -> str:
    trained = [
        parameter for parameter in history.weights if history.is_held(parameter) and "value" in history.gradients(parameter)
    ]
    number = len(run.optimizers)
    holders = "the optimizer" if number == 1 else f"one of {number} optimizers"
    outside = [p for p in history.weights if not history.is_held(p) and "value" in history.gradients(p)]
    told = f"All parameters that train are held by {holders} ({len(trained)} parameters with gradients)."
    if outside:
        told = (
            f"{len(trained)} parameters with gradients are held by {holders}; {len(outside)} are in none and were loaded "
            "from weights or "
            "changed by hand, which is taken as intended."
        )
    return told


def _limits(run: Run, history: ParameterHistory) -> str:
    sampled = len(
        {snapshot.step for snapshots in run.snapshots.values() for snapshot in snapshots if snapshot.gradient is not None}
    )
    return (
        f"Would have seen any trainable parameter that had a gradient at one of {sampled} sampled steps and was in no "
        "optimizer over "
        f"{history.optimizer_steps} steps. Parts of modules that were never called are not judged."
    )
