"""Gradients accumulated or averaged wrongly

## What it checks
Where several batches are propagated back before one optimizer step: whether the loss is divided by their number, and whether
the batches after the last full window of an epoch are thrown away.

## Why it hurts accuracy
Backward passes add up. Without the division the gradient of k batches is k times that of one: with SGD the learning rate is k
times what was set. Batches whose gradients are cleared before a step used them are read for nothing; on a short epoch that is
a large share.

## Method
Only runs with one optimizer and one line of backward passes are judged, in which most steps have the same number of passes,
at least two, each on a batch of its own. *Not divided*: at all sampled steps every pass started from exactly the value that a
loss function with `reduction='mean'` gave, and the gradients were not divided later: the gradient of a layer's bias is the
sum of the gradients of its output, as measured. *Divided twice*: every pass started from the loss over the square of the number
of passes. *Thrown away*: at the end of every epoch a tenth of its batches or more were
propagated back, and a `zero_grad` came before the next step.

## Evidence
Passes per step, the loss values before and at the backward pass, the ratio of gradients; batches per epoch and how many were
lost.

## Limits
Losses of one's own, sums by design, several losses per step and clipped gradients are not judged. A learning rate
that was lowered to make up for the missing division cannot be told from one that was not.

## What to do
Propagate `loss / k`, or divide one's own sum of gradients by k, and step once more at the end of the epoch for the batches that
are left.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from trueline.checks.base import Item
from trueline.model import MOST_LOSS_CALLS, Evidence, Finding, Step
from trueline.store import Run
from trueline.views.event_order import EventOrder
from trueline.views.words import either

ITEM = Item(__name__, __doc__)
NEEDS = ("order",)
RANK = 24
CONSEQUENCES = ("hp.01", "hp.03", "tr.05")

_MOST = 0.6
_SAME = 1e-4
_TWICE = 1e-2
_FEWEST_STEPS = 3
_LARGE_SHARE = 0.1
# Sums of float32 values are exact to about 1e-6 of the sum of their sizes.
_CANCELLED = 1e-3
# An adaptive optimizer divides by the size of the gradients itself.
_ADAPTIVE = ("Adam", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "LAMB", "Lion")


def conclude(run: Run) -> Finding:
    stepped = [step for step in run.steps if step.optimizer is not None and step.backwards]
    several = [step for step in stepped if step.backwards > 1]
    if len(several) < _MOST * len(stepped) or not several:
        return ITEM.not_applicable("No accumulation was seen: most steps have one backward pass.")
    if len({step.optimizer for step in stepped}) > 1 or len(stepped) < _FEWEST_STEPS:
        return ITEM.not_checked("several optimizers take turns, or fewer than three steps were recorded.")
    if len({event.location for event in run.events_of("backward")}) > 1:
        return ITEM.not_applicable("The passes of a step come from different lines: several losses, not accumulation.")
    window, count = Counter(step.backwards for step in stepped).most_common(1)[0]
    if not _own_batches(run, several):
        return ITEM.not_checked("the passes of a step are not one per batch.")
    order = EventOrder(run, "backward", "zero_grad", "optimizer_step")
    problem = _thrown_away(run, order)
    if problem is not None:
        return problem
    if count < _MOST * len(stepped) or window < 2:
        return ITEM.not_checked("the steps have no common number of passes.")
    return _divided(run, order, stepped, window)


def _own_batches(run: Run, steps: list[Step]) -> bool:
    fed: dict[int, set[int]] = {}
    for call in run.root_calls:
        if call.grad and not call.loss and call.batch is not None:
            fed.setdefault(call.step, set()).add(call.batch)
    return sum(len(fed.get(step.id, ())) >= step.backwards for step in steps) >= _MOST * len(steps)


def _divided(run: Run, order: EventOrder, stepped: list[Step], window: int) -> Finding:
    ratios, means = [], True
    calls = [call for call in run.loss_calls if call.grad]
    for start, step in pairwise([None, *stepped]):
        passes = order.between("backward", start.seq if start else -1, step.seq) if step else []
        own = [call for call in calls if step and call.step == step.id]
        if own and (len(own) == len(passes) or len(own) == MOST_LOSS_CALLS < len(passes)):
            means = means and all(call.settings.get("reduction") == "mean" for call in own)
            ratios += [one.value / call.value for one, call in zip(passes, own, strict=False) if call.value and one.value]
    if not ratios or not means:
        return ITEM.not_checked("the loss of each pass is not one of the framework's functions with reduction='mean'.")
    later = _divided_later(run)
    if all(abs(ratio * window * window - 1) < _TWICE for ratio in ratios):
        return _divided_twice(run, stepped, window, len(ratios))
    if any(abs(ratio - 1) > _SAME for ratio in ratios):
        return ITEM.no_problem(
            f"{window} passes per step; the propagated loss is {sorted(ratios)[len(ratios) // 2]:.4g} of the computed one.",
            limits="Passes from the computed loss itself at all sampled steps would have been seen.",
        )
    if later is None or later < _MOST:
        return ITEM.not_checked(
            "the loss is not divided, but whether the gradients are divided, scaled or clipped later is not known."
        )
    adaptive = _is_adaptive(run, stepped)
    # Where gradients are added up by the script itself, the sum is divided before the optimizer gets it.
    where = run.events_of("optimizer_step" if run.framework == "mindspore" else "backward")[0].location
    effect = (
        "an adaptive optimizer makes up for most of it" if adaptive else f"the learning rate is in effect {window} times as large"
    )
    return ITEM.problem(
        f"The gradients of {window} batches are added up for each step, and the loss is not divided by {window}: {effect}.",
        confidence=0.7 if adaptive else 0.85,
        evidence=[
            Evidence(
                f"{len(stepped)} steps with {window} backward passes; at {len(ratios)} sampled passes the loss was "
                "propagated as it was "
                f"computed, and the biases' gradients are {later:.3g} of the sum of those of their outputs.",
                {"window": window, "passes": len(ratios), "ratio": later},
                location=where,
            )
        ],
        location=where,
        fix=either(
            run,
            pytorch=f"Propagate `loss / {window}` at {where}.",
            mindspore=f"Divide the sum of the gradients by {window} before the optimizer gets it at {where}, or differentiate "
            f"`loss / {window}`.",
        ),
        limits="Passes from the computed loss itself at all sampled steps would have been seen.",
    )


def _is_adaptive(run: Run, stepped: list[Step]) -> bool:
    return any(name in run.optimizers[stepped[0].optimizer or 0].type for name in _ADAPTIVE)


def _divided_twice(run: Run, stepped: list[Step], window: int, passes: int) -> Finding:
    where = run.events_of("backward")[0].location
    adaptive = _is_adaptive(run, stepped)
    effect = (
        "an adaptive optimizer makes up for most of it"
        if adaptive
        else f"the learning rate is in effect 1/{window} of what is set"
    )
    return ITEM.problem(
        f"The loss is divided by {window} twice for the {window} batches of each step: {effect}.",
        confidence=0.7 if adaptive else 0.85,
        evidence=[
            Evidence(
                f"{len(stepped)} steps with {window} backward passes; at {passes} sampled passes what was propagated is "
                f"1/{window * window} of the loss that was computed.",
                {"window": window, "passes": passes},
                location=where,
            )
        ],
        location=where,
        fix=f"Divide by {window} once: where the loss is computed, or at {where}.",
        limits="A loss that is divided by the square of the number of passes at all sampled steps would have been seen.",
    )


def _divided_later(run: Run) -> float | None:
    """The gradients of biases at the step, as a share of the sum over the output gradients that were measured (of four calls)."""
    sums: dict[tuple[int, int], float] = {}
    sizes: dict[tuple[int, int], float] = {}
    for stat in run.stats("output_grad"):
        count = 1
        for size in stat.shape:
            count *= size
        key = (stat.step, stat.subject)
        sums[key] = sums.get(key, 0.0) + (stat.mean or 0.0) * count
        sizes[key] = sizes.get(key, 0.0) + (stat.abs_mean or 0.0) * count
    scales = {event.step: event.value for event in run.events_of("scale") if event.value}
    ratios = []
    for stat in run.stats("gradient"):
        parameter = run.parameters.get(stat.subject)
        if (
            parameter is None
            or not parameter.path.endswith("bias")
            or run.modules[parameter.module].kind not in ("linear", "conv")
        ):
            continue
        key = (stat.step, parameter.module)
        # Sums that cancel (those of logits do, exactly) tell nothing.
        if key in sums and abs(sums[key]) > _CANCELLED * sizes[key] > 0:
            # A scaler has divided them by its scale on the way, which it multiplied the loss by.
            ratios.append((stat.mean or 0.0) * stat.shape[0] / sums[key] * scales.get(stat.step, 1.0))
    return sorted(ratios)[len(ratios) // 2] if ratios else None


def _thrown_away(run: Run, order: EventOrder) -> Finding | None:
    """Batches at the end of every epoch whose gradients were cleared before a step."""
    epochs: dict[tuple[int, int], list[int]] = {}
    trained = {call.batch for call in run.root_calls if call.grad and not call.loss}
    for batch in run.batches:
        if batch.loader is not None and batch.epoch is not None and batch.seq in trained:
            epochs.setdefault((batch.loader, batch.epoch), []).append(batch.seq)
    if len({loader for loader, _ in epochs}) != 1 or len(epochs) < 2:
        return None
    starts = [seqs[0] for seqs in epochs.values()]
    lost = []
    for seqs, end in zip(epochs.values(), [*starts[1:], 1 << 62], strict=True):
        step = order.last("optimizer_step", end)
        passes = order.between("backward", max(step.seq if step else -1, seqs[0]), end)
        following = order.between("backward", end, 1 << 62)
        if not passes or not following:
            continue
        clears = order.between("zero_grad", passes[-1].seq, following[0].seq)
        if clears:
            lost.append((len(passes), len(seqs), clears[0]))
    if len(lost) < len(epochs) - 1 or not lost or min(count / size for count, size, _ in lost) < _LARGE_SHARE:
        return None
    count, size, clear = lost[0]
    return ITEM.problem(
        f"The last {count} of {size} batches of every epoch are thrown away: their gradients are cleared "
        "before a step uses them.",
        confidence=0.85,
        evidence=[
            Evidence(
                f"At the end of {len(lost)} epochs {count} of {size} batches were propagated back, then `zero_grad` at "
                f"{clear.location}, without an optimizer step between them.",
                {"lost": count, "batches": size, "epochs": len(lost)},
                clear.step,
                clear.location,
            )
        ],
        location=clear.location,
        fix="Step once more at the end of the epoch for the batches that are left, or choose a window that divides their number.",
        limits="A tenth of the batches lost at every epoch would have been seen.",
    )
