"""Why the weights of ranks part: what differs first, and on which line."""

from __future__ import annotations

from collections import Counter

import msgspec

from trueline.model import Event, Evidence, Location
from trueline.views.parameters import listed, shared_module
from trueline.views.ranks import WRAPPER, Key, Ranks
from trueline.views.words import words_of

Differing = dict[int, list[Key]]


class Cause(msgspec.Struct, frozen=True):
    summary: str
    fix: str
    location: Location | None
    evidence: list[Evidence]
    confidence: float = 0.95


def cause_of_drift(ranks: Ranks, differing: Differing) -> Cause:
    """The first of the known causes that the records show; `differing` holds the parameters that differ, by step."""
    return (
        _steps_on_some_ranks(ranks)
        or _initial_weights(ranks, differing)
        or _gradients(ranks, differing)
        or _hyperparameters(ranks)
        or _loads(ranks, after_first_step=True)
        or _inside_of_graphs(ranks)
        or _unknown(ranks)
    )


def _steps_on_some_ranks(ranks: Ranks) -> Cause | None:
    counts = {rank: sum(step.optimizer is not None for step in run.steps) for rank, run in ranks.runs.items()}
    idle = [rank for rank, count in counts.items() if not count]
    if not idle or len(idle) == len(counts):
        return None
    stepping = next(rank for rank, count in counts.items() if count)
    line = _usual_line(ranks.runs[stepping].events_of("optimizer_step"))
    return Cause(
        f"Only some ranks update their weights: {_of_ranks(idle)} backpropagates and never steps an optimizer.",
        f"Call `{words_of(ranks.first).step}` on every rank: each holds its own copy of the weights.",
        line,
        [
            Evidence(
                "Optimizer steps by rank: " + ", ".join(f"{rank}: {count}" for rank, count in counts.items()) + ".",
                {},
                None,
                line,
            )
        ],
    )


def _initial_weights(ranks: Ranks, differing: Differing) -> Cause | None:
    keys = differing.get(-1) or differing.get(0) or []
    if not keys:
        return None
    unaveraged = not ranks.averages_gradients and not ranks.reduces_inside
    names = listed(name for name, _, _ in keys)
    told = Evidence(
        f"Before the first update {len(keys)} of {len(ranks.common)} parameters differ between ranks: {names}.", step=0
    )
    loads = _loads(ranks, after_first_step=False)
    if loads is not None:
        return msgspec.structs.replace(loads, evidence=[told, *loads.evidence])
    built = _built(ranks, keys)
    if unaveraged and (ranks.gradients_differ(0) or not ranks.gradients_seen):
        return _no_averaging(ranks, [told])
    wrapped = ranks.any_of(WRAPPER)
    refilled = [ranks.parameters[ranks.first.rank][key].initialised for key in keys]
    if wrapped and len(keys) <= len(ranks.common) and any(refilled):
        line = next(line for line in refilled if line is not None)
        if line != built:
            return Cause(
                "The ranks start with different weights: they are initialised after the wrapper made them equal.",
                "Initialise the model before `DistributedDataParallel` is built, which copies the weights of "
                "rank 0 to all ranks.",
                line,
                [told],
            )
    seed = _differing_seed(ranks)
    if seed is not None:
        told_seed = Evidence("The seed that the weights are drawn with differs between ranks.", seed.detail, None, seed.location)
        return Cause(
            "The ranks start with different weights: each draws them with a seed of its own, and nothing broadcasts them.",
            f"Build the model under the same seed on all ranks, or {ranks.words.broadcast}",
            seed.location,
            [told, told_seed],
        )
    return Cause(
        "The ranks start with different weights, and nothing makes them equal.",
        f"Set the same seed on all ranks before the model is built, or {ranks.words.broadcast}",
        built,
        [told],
    )


def _loads(ranks: Ranks, *, after_first_step: bool) -> Cause | None:
    """State that is loaded on some ranks only."""
    loads = {
        rank: [event for event in run.events_of("load") if (event.step > 0) == after_first_step and event.detail.get("changed")]
        for rank, run in ranks.runs.items()
    }
    lines = {rank: Counter(event.location for event in events) for rank, events in loads.items()}
    for rank, counted in lines.items():
        for line, count in counted.items():
            without = [other for other, others in lines.items() if others[line] < count]
            if line is not None and without:
                return Cause(
                    f"The ranks have different weights: {line} loads state on rank {rank} and not on {_of_ranks(without)}.",
                    f"Load the same state on every rank, or {ranks.words.broadcast}",
                    line,
                    [Evidence(f"State was loaded {count} times on rank {rank}.", {}, None, line)],
                )
    return None


def _differing_seed(ranks: Ranks) -> Event | None:
    """The last seed of the framework before the first step, if its value is not the same on all ranks."""
    last = {}
    for rank, run in ranks.runs.items():
        own = [event for event in run.events_of("seed") if event.detail.get("library") == ranks.words.library]
        seeds = [event for event in own if event.step == 0]
        if not seeds:
            return None
        last[rank] = seeds[-1]
    return last[ranks.first.rank] if len({str(event.detail.get("seed")) for event in last.values()}) > 1 else None


def _gradients(ranks: Ranks, differing: Differing) -> Cause | None:
    """Gradients that differ at the last step before which the weights were still equal."""
    equal = [step for step in ranks.shared_steps if step >= 0 and not differing[step]]
    before = [step for step in equal if all(later not in equal or later <= step for later in ranks.shared_steps)]
    step = before[-1] if before else None
    if step is None:
        return None
    keys = ranks.gradients_differ(step)
    if not keys:
        return None
    told = Evidence(
        f"At step {step} the weights are equal on all ranks and {len(keys)} of {len(ranks.common)} gradients are not "
        f"({listed(name for name, _, _ in keys)}).",
        {"step": step},
        step,
    )
    for explain in (_clipped, _raw_module, _no_sync, _left_out, _reduced_elsewhere):
        cause = explain(ranks, keys, told)
        if cause is not None:
            return cause
    if not ranks.any_of(WRAPPER):
        return _no_averaging(ranks, [told])
    return Cause(
        "The gradients are averaged, and changed on single ranks before the optimizer takes them.",
        f"Do the same with the gradients on every rank between backward and `{words_of(ranks.first).step}`.",
        _usual_line(ranks.first.events_of("optimizer_step")),
        [told],
        confidence=0.8,
    )


def _clipped(ranks: Ranks, _keys: list[Key], told: Evidence) -> Cause | None:
    clips = {rank: run.events_of("clip") for rank, run in ranks.runs.items()}
    limits = {rank: {str(event.detail.get("limit")) for event in events} for rank, events in clips.items()}
    if len({frozenset(values) for values in limits.values()}) < 2:
        return None
    rank = max(clips, key=lambda rank: len(clips[rank]))
    line = _usual_line(clips[rank])
    counts = ", ".join(f"{rank}: {len(events)}" for rank, events in clips.items())
    return Cause(
        "The gradients are clipped differently on different ranks.",
        "Clip on every rank, with the same limit: the averaged gradients are the same everywhere.",
        line,
        [told, Evidence(f"Calls that clip gradients, by rank: {counts}.", {}, None, line)],
    )


def _raw_module(ranks: Ranks, _keys: list[Key], told: Evidence) -> Cause | None:
    built = ranks.operations(WRAPPER)[ranks.first.rank]
    calls = ranks.training_calls(ranks.first.rank)
    if not built or not calls or any(ranks.first.modules[call.module].type == WRAPPER for call in calls):
        return None
    line = Counter(call.location for call in calls).most_common(1)[0][0]
    return Cause(
        "The training step calls the raw module instead of the DistributedDataParallel around it, which never "
        "averages the gradients.",
        "Call the wrapper that DistributedDataParallel returned, not the module it was given (nor its `.module`).",
        line,
        [told, Evidence("DistributedDataParallel is built and never called with gradients.", {}, None, built[0].location)],
    )


def _no_sync(ranks: Ranks, _keys: list[Key], told: Evidence) -> Cause | None:
    contexts = ranks.operations("no_sync")[ranks.first.rank]
    if not contexts:
        return None
    line = _usual_line(contexts)
    return Cause(
        "An optimizer step uses gradients that were made under `no_sync`, which are not averaged.",
        "Leave `no_sync` out of the last backward pass before each `optimizer.step()`.",
        line,
        [told, Evidence(f"`no_sync` was entered {len(contexts)} times.", {}, None, line)],
    )


def _left_out(ranks: Ranks, keys: list[Key], told: Evidence) -> Cause | None:
    """Some parameters are averaged and others are not."""
    if len(keys) >= len(ranks.common) or not ranks.averages:
        return None
    run = ranks.first
    parameters = [ranks.parameters[run.rank][key] for key in keys]
    part = shared_module(run, parameters)
    reductions = ranks.reductions_of("gradient")[run.rank]
    module = next((module for module in run.modules.values() if module.name == part), None)
    built = (module.built or module.called) if module is not None else _built(ranks, keys)
    line = _usual_line(reductions) if reductions else built
    what = part or listed(parameter.name for parameter in parameters)
    return Cause(
        f"The gradients of {what} are not averaged over the ranks, those of the other parameters are.",
        ranks.words.every_parameter,
        line.of_module(part) if line is not None and part else line,
        [told],
    )


def _reduced_elsewhere(ranks: Ranks, _keys: list[Key], told: Evidence) -> Cause | None:
    """Something is reduced in the training steps, but not what the optimizer takes."""
    run = ranks.first
    reduced = [event for event in ranks.operations("all_reduce", "reduce")[run.rank] if event.location is not None]
    steps = {event.step for event in reduced}
    if len(steps) * 2 < len(run.steps):
        return None
    of_gradient = [event for event in reduced if event.detail.get("of") == "gradient"]
    line = _usual_line(of_gradient or reduced)
    if not of_gradient and _reduces_loss_only(ranks, reduced):
        return None
    what = (
        "The gradients are reduced at the wrong moment: the optimizer takes them before, or they are replaced afterwards."
        if of_gradient
        else "What is reduced over the ranks is not what the optimizer takes: the gradients stay those of each rank."
    )
    return Cause(
        what,
        ranks.words.reduce,
        line,
        [told, Evidence(f"all_reduce is called in {len(steps)} of {len(run.steps)} steps.", {}, None, line)],
        confidence=0.85,
    )


def _reduces_loss_only(ranks: Ranks, reduced: list[Event]) -> bool:
    """One reduction per step is a figure for the log, not a model's worth of gradients."""
    first = Counter(event.step for event in reduced if event.step in set(ranks.shared_steps))
    return not first or max(first.values()) < min(2, len(ranks.common))


def _no_averaging(ranks: Ranks, told: list[Evidence]) -> Cause:
    steps = ranks.first.events_of("optimizer_step")
    return Cause(
        "The gradients are not averaged over the ranks: each rank trains a model of its own on its share of the data.",
        ranks.words.average,
        # The wrapper belongs around the model; where there is none, what averages belongs in front of the optimizer.
        _built(ranks, ranks.common) if ranks.first.framework == "pytorch" else _usual_line(steps),
        [*told, Evidence(ranks.words.nothing_averages)],
        confidence=0.9,
    )


def _hyperparameters(ranks: Ranks) -> Cause | None:
    values: dict[tuple[int, int, int, str], dict[int, str]] = {}
    for rank, run in ranks.runs.items():
        for entry in run.hyperparameters:
            values.setdefault((entry.step, entry.optimizer, entry.group, entry.name), {})[rank] = str(entry.value)
    for (step, optimizer, _, name), told in sorted(values.items(), key=lambda pair: pair[0][0]):
        if name not in {"lr", "momentum", "weight_decay", "betas", "eps", "nesterov"}:
            continue
        if len(set(told.values())) == 1 and len(told) == len(ranks.runs):
            continue
        if step > 0 and len(told) == len(ranks.runs) and len(set(told.values())) == 1:
            continue
        schedules = {rank: run.events_of("scheduler_step") for rank, run in ranks.runs.items()}
        uneven = len({len(events) for events in schedules.values()}) > 1
        busiest = max(schedules, key=lambda rank: len(schedules[rank]))
        known = ranks.runs[ranks.first.rank].optimizers.get(optimizer)
        line = _usual_line(schedules[busiest]) if uneven else known.built if known is not None else None
        shown = ", ".join(f"rank {rank}: {value}" for rank, value in sorted(told.items()))
        return Cause(
            f"The ranks use different hyper-parameters: {name} from step {step} on is not the same on all ranks.",
            "Step the schedule on every rank." if uneven else f"Give the optimizer the same {name} on every rank.",
            line,
            [Evidence(f"{name} at step {step}: {shown}.", {"step": step, "name": name}, step, line)],
        )
    return None


def _inside_of_graphs(ranks: Ranks) -> Cause | None:
    """Gradients inside of compiled steps are not seen. That nothing reduces them is."""
    if ranks.gradients_seen or ranks.averages_gradients:
        return None
    told = Evidence("The ranks' weights are equal before the first update and part with it; their gradients were not recorded.")
    if not ranks.reduces_inside:
        return _no_averaging(ranks, [told])
    reduced = ranks.operations("all_reduce")[ranks.first.rank]
    return Cause(
        "What is reduced over the ranks is not what the optimizer takes: the gradients, or some of them, stay each rank's own.",
        ranks.words.reduce,
        _usual_line(reduced),
        [told, Evidence("The compiled step holds a reduction over the ranks.", {}, None, _usual_line(reduced))],
        confidence=0.75,
    )


def _unknown(ranks: Ranks) -> Cause:
    line = _usual_line(ranks.first.events_of("optimizer_step"))
    return Cause(
        "The ranks part although weights and gradients were equal: something other than the averaged gradients "
        "changes the weights.",
        "Look for code that writes to parameters, or to the optimizer's state, on single ranks or at random.",
        line,
        [Evidence("At the last shared step before the weights differ, gradients and hyper-parameters are equal.")],
        confidence=0.75,
    )


def _built(ranks: Ranks, keys: list[Key]) -> Location | None:
    """The line that builds the model that these parameters belong to."""
    run = ranks.first
    roots = Counter(ranks.parameters[run.rank][key].root for key in keys)
    if not roots:
        return None
    root = run.modules[roots.most_common(1)[0][0]]
    inner = next((module for module in run.modules.values() if module.root == root.id and module.path == "module"), None)
    model = inner if root.type == WRAPPER and inner is not None else root
    return model.built or root.built


def _usual_line(events: list[Event]) -> Location | None:
    lines = Counter(event.location for event in events if event.location is not None)
    return lines.most_common(1)[0][0] if lines else None


def _of_ranks(ranks: list[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))
