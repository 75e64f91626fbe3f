"""Gradients that are summed over ranks and divided nowhere: neither the loss, nor before the sum, nor after it."""

from __future__ import annotations

from collections import defaultdict

from trueline.checks.tr_04_ranks_drift.drift_causes import Cause
from trueline.model import Event, Evidence
from trueline.store import Run
from trueline.views.ranks import Ranks

# Updates of these grow with the gradient; adaptive optimizers divide its scale out again.
_PROPORTIONAL = {"SGD", "ASGD", "Rprop", "Momentum"}
_SAME = 1e-3
_FEWEST_STEPS = 2


def sum_inside_of_graph(ranks: Ranks) -> bool:
    """Whether compiled steps sum gradients over the ranks, where it cannot be seen what becomes of the sum and would matter."""
    reduced = ranks.reductions_of("gradient")[ranks.first.rank]
    return _length_matters(ranks.first) and any(
        event.detail.get("compiled") and event.detail.get("op") == "SUM" for event in reduced
    )


def _length_matters(run: Run) -> bool:
    return all(optimizer.type in _PROPORTIONAL for optimizer in run.optimizers.values()) and not run.events_of("clip")


def undivided_sum(ranks: Ranks) -> Cause | None:
    """Whether every reduced gradient that could be followed entered the optimizer as the plain sum over the ranks."""
    run = ranks.first
    if not _length_matters(run):
        return None
    reduced = [
        event
        for event in ranks.reductions_of("gradient")[run.rank]
        if event.detail["operation"] == "all_reduce" and "l2_after" in event.detail
    ]
    if not reduced or any(event.detail.get("op") != "SUM" for event in reduced):
        return None
    taken = {(stat.step, stat.subject): stat.l2 for stat in run.stats("gradient")}
    once = _reduced_once(reduced)
    for event in once:
        l2 = taken.get((event.step, event.detail["parameter"]))
        if l2 is None or abs(l2 - event.detail["l2_after"]) > _SAME * event.detail["l2_after"]:
            return None
    whole = [event for event in once if _is_undivided_before(run, event)]
    steps = {event.step for event in whole}
    if len(steps) < _FEWEST_STEPS:
        return None
    line = reduced[0].location
    size = len(ranks.runs)
    return Cause(
        f"The gradients are summed over {size} ranks and not divided: every update is {size} times as long as "
        "that of the average.",
        ranks.words.divide,
        line,
        [
            Evidence(
                f"In {len(steps)} steps the optimizer takes gradients exactly as all_reduce(SUM) left them, and they were those "
                "of the whole local loss before it.",
                {"steps": sorted(steps)[:10], "ranks": size},
                min(steps),
                line,
            )
        ],
        confidence=0.8,
    )


def _reduced_once(reduced: list[Event]) -> list[Event]:
    by_place: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in reduced:
        by_place[event.step, event.detail["parameter"]].append(event)
    return [events[0] for events in by_place.values() if len(events) == 1]


def _is_undivided_before(run: Run, event: Event) -> bool:
    """Whether a bias had its whole gradient before the sum: that of its layer's output added up, for a loss that is a mean.

    The gradient of a bias is the sum of the gradients of its layer's output, so a division before the reduction shows.
    """
    parameter = run.parameters[event.detail["parameter"]]
    module = run.modules[parameter.module]
    if not parameter.path.endswith("bias") or module.kind not in {"linear", "conv"} or not _loss_is_a_mean(run, event.step):
        return False
    stats = [stat for stat in run.stats("output_grad", module.id) if stat.step == event.step]
    if len(stats) != 1 or stats[0].mean is None:
        return False
    size = 1
    for length in stats[0].shape:
        size *= length
    expected, scale = stats[0].mean * size, (stats[0].abs_mean or 0.0) * size
    # The sum of a bias gradient of a softmax loss is nothing but rounding: it can tell nothing.
    if abs(expected) < 0.01 * scale:
        return False
    return abs(float(event.detail["sum_before"]) - expected) <= 0.01 * abs(expected)


def _loss_is_a_mean(run: Run, step: int) -> bool:
    """Whether the backward pass started from a loss function's own mean, undivided."""
    values = [
        call.value
        for call in run.loss_calls
        if call.step == step and call.grad and call.settings.get("reduction", "mean") == "mean"
    ]
    losses = [one.loss for one in run.steps if one.id == step]
    if len(values) != 1 or not losses or losses[0] is None or values[0] is None:
        return False
    return abs(values[0] - losses[0]) <= _SAME * abs(losses[0])
