"""Gradients not cleared, or cleared at the wrong place

## What it checks
Backward passes add to the gradients that are there. Between two optimizer steps the gradients have to be cleared once:
after the step (or before the first backward pass), not between the backward pass and the step.

## Why it hurts accuracy
Never cleared, every update repeats all the batches seen so far: the gradient norm grows with the step count, the updates
overshoot, the loss oscillates or diverges. Cleared between backward pass and step, the optimizer has nothing to apply and
the weights never move.

## Method
For each optimizer on its own:

- *cleared just before the step*: at most of its steps there was no gradient, or one of norm zero, and a `zero_grad` lies
  between the last backward pass and the step;
- *never cleared*: at 90 % or more of the steps after the first, the gradients still held the previous step's content when
  the backward pass started (the recorder looks at the gradients themselves, so it does not matter how they are cleared);
- *cleared now and then*: the same at more than half of them, with cleared ones in between, for instance once per epoch;
- *accumulated batches thrown away*: a single optimizer, several backward passes per step on different batches, and a
  `zero_grad` between them at every step.

MindSpore's gradient functions give new gradients in every call. Where a script adds them up in parameters of its own, the sum at
a step is compared with the gradients made since the step before: alone, or on top of the old sum.

Several backward passes per step with a clean start are accumulation or several losses, and are fine.

## Evidence
How many steps started from uncleared gradients, the gradient norm over the steps, and where `zero_grad` was called.

## Limits
Clearing that is forgotten at less than half of the steps is not reported. A gradient that another model's loss leaves in
this one's parameters between two steps (a generator's loss in the discriminator) is not told from accumulation.

## What to do
Call `optimizer.zero_grad()` once per update: right after `optimizer.step()`, or before the first backward pass of the next. In
MindSpore set one's own sums of gradients back to zero there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import pairwise

import msgspec

from trueline.checks.base import Item
from trueline.checks.parts import Part, worst_of
from trueline.model import Event, Evidence, Finding, Location, Step
from trueline.store import Run
from trueline.views.event_order import EventOrder
from trueline.views.parameters import name_of_optimizer
from trueline.views.words import either, words_of

item = Item(__name__, __doc__)
NEEDS = ("gradients",)

CONSEQUENCES = ("hp.01", "tr.05", "cg.02", "tr.02", "tr.03", "mp.01", "mp.02")
RANK = 20

_FEWEST_STEPS = 2
_NEVER = 0.9
_MOSTLY = 0.5
_REGULAR = 0.8


def conclude(run: Run) -> Finding:
    steps_of: dict[int, list[Step]] = {}
    order = EventOrder(run, "backward", "zero_grad", "optimizer_step")
    for step in run.steps:
        if step.optimizer is not None:
            earlier = steps_of.setdefault(step.optimizer, [])
            earlier.append(_with_clearing_in_closure(order, step, earlier[-1].seq) if earlier else step)
    if not steps_of:
        return item.not_applicable("No optimizer step was seen in this run.")
    alone = len(steps_of) == 1
    return worst_of(
        Part(name_of_optimizer(run, optimizer), finding)
        for optimizer, steps in steps_of.items()
        for finding in _conclude_optimizer(run, order, optimizer, steps, alone=alone)
    )


def _conclude_optimizer(run: Run, order: EventOrder, optimizer: int, steps: list[Step], *, alone: bool) -> list[Finding]:
    """All that is wrong with the steps of an optimizer, or that nothing is."""
    found = [
        _cleared_before_step(run, order, optimizer, steps),
        _carried_over(run, order, optimizer, steps),
        _batches_thrown_away(run, order, optimizer, steps) if alone else None,
    ]
    return [finding for finding in found if finding is not None] or [_nothing_found(steps)]


def _with_clearing_in_closure(order: EventOrder, step: Step, previous: int) -> Step:
    """An optimizer that runs its backward pass in a closure is cleared by a `zero_grad` ahead of it in the closure."""
    backwards = order.between("backward", previous, step.seq)
    if step.cleared is not None or not backwards:
        return step
    cleared = any(event.subject == step.optimizer for event in order.between("zero_grad", previous, backwards[0].seq))
    return msgspec.structs.replace(step, cleared=True) if cleared else step


def _nothing_found(steps: list[Step]) -> Finding:
    known = [step for step in steps if step.cleared is not None]
    if len(known) < _FEWEST_STEPS:
        return item.not_checked(
            "the state of the gradients before the backward pass is known for fewer than two steps after an optimizer's first "
            "(a short run, or an optimizer that makes its backward passes in a closure)."
        )
    several = sum(step.backwards > 1 for step in steps)
    accumulation = f" {several} steps had several backward passes with a clean start: accumulation, or several losses."
    return item.no_problem(
        f"Gradients started from nothing at {sum(bool(step.cleared) for step in known)} of {len(known)} steps after the "
        f"first.{accumulation if several else ''}",
        limits="Gradients carried over at more than half of an optimizer's steps, or cleared right "
        "before most of its steps, would have been seen.",
        confidence=0.95,
    )


def _carried_over(run: Run, order: EventOrder, optimizer: int, steps: list[Step]) -> Finding | None:
    known = [step for step in steps if step.cleared is not None]
    carried = [step for step in known if not step.cleared]
    if len(carried) < _FEWEST_STEPS or len(carried) <= _MOSTLY * len(known):
        return None
    never = len(carried) >= _NEVER * len(known)
    clears = [event for event in order.between("zero_grad", -1, steps[-1].seq) if event.subject in (optimizer, None)]
    clear_lines = sorted({event.location for event in clears if event.location}, key=str)
    backward = order.last("backward", carried[0].seq)
    ending = order.between("optimizer_step", carried[0].seq - 1, carried[0].seq + 1)
    stepping = f" (`{words_of(run).step}` at line {ending[0].location.line})" if ending and ending[0].location else ""
    if never:
        summary = f"The gradients are not cleared between steps: {len(carried)} of {len(known)} steps started from old ones."
    else:
        gaps = Counter(later.id - earlier.id for earlier, later in pairwise(step for step in known if step.cleared))
        every = f", about every {gaps.most_common(1)[0][0]} steps," if gaps else ""
        summary = (
            f"The gradients are cleared only now and then{every} while the optimizer steps more often: "
            f"{len(carried)} of {len(known)} steps started from old ones."
        )
    where = clear_lines[0] if len(clear_lines) == 1 and not never else backward.location if backward else None
    if run.framework == "mindspore" and ending:
        # Gradient functions give new gradients in every call: what is carried over is a sum of the script's own.
        where = ending[0].location
    return item.problem(
        summary,
        confidence=0.97 if never else 0.93,
        evidence=_evidence_of_carrying(steps, carried, len(known), clears, clear_lines),
        location=where,
        fix=either(
            run,
            pytorch=f"Call `optimizer.zero_grad()` once per step: before the backward pass, or right after the step{stepping}.",
            mindspore="Set the sums of gradients back to zero (`ops.assign(each, ops.zeros_like(each))`) right after the "
            f"step{stepping}.",
        ),
        limits="Gradients carried over at more than half of an optimizer's steps would have been seen.",
    )


def _evidence_of_carrying(
    steps: list[Step], carried: list[Step], known: int, clears: list[Event], clear_lines: list[Location]
) -> list[Evidence]:
    evidence = [
        Evidence(
            f"At {len(carried)} of {known} steps the backward pass added to gradients that the previous step had used.",
            {"carried": len(carried), "known": known, "steps": len(steps)},
            carried[0].id,
        )
    ]
    norms = [step.grad_norm for step in steps if step.grad_norm is not None]
    if len(norms) > 1:
        evidence.append(
            Evidence(
                f"The gradient norm was {norms[0]:.4g} at the first step and {norms[-1]:.4g} at the last.",
                {"first": norms[0], "last": norms[-1]},
            )
        )
    if clears:
        where = ", ".join(str(line) for line in clear_lines) or "an unknown line"
        evidence.append(
            Evidence(
                f"`zero_grad` was called {len(clears)} times for {len(steps)} steps, at {where}.",
                {"calls": len(clears), "steps": len(steps)},
                location=clear_lines[0] if clear_lines else None,
            )
        )
    return evidence


def _last_clear(order: EventOrder, optimizer: int, start: int, end: int) -> Event | None:
    """The last clearing of this optimizer's gradients (or of a module's) between two moments."""
    clears = [event for event in order.between("zero_grad", start, end) if event.subject in (optimizer, None)]
    return clears[-1] if clears else None


def _cleared_before_step(run: Run, order: EventOrder, optimizer: int, steps: list[Step]) -> Finding | None:
    forward = [call.seq for call in run.root_calls if call.grad and not call.loss]
    found = []
    for step in steps:
        backward = order.last("backward", step.seq)
        clear = _last_clear(order, optimizer, backward.seq, step.seq) if backward else None
        if backward and bisect_right(forward, backward.seq) < bisect_left(forward, step.seq):
            # The forward pass of a batch came in between: its backward pass is still to come, which is tr.03's.
            continue
        if backward and clear and (step.with_gradient == 0 or step.grad_norm == 0):
            found.append((step, backward, clear))
    if len(found) <= _MOSTLY * len(steps):
        return None
    first, backward, clear = found[0]
    held = (first.with_gradient or 0) + (first.without_gradient or 0)
    return item.problem(
        f"The gradients are cleared between the backward pass and the optimizer step: {len(found)} of {len(steps)} steps had "
        "nothing to apply.",
        confidence=0.98,
        evidence=[
            Evidence(
                f"Step {first.id}: backward pass at {backward.location}, then `zero_grad` at {clear.location}, then the step, "
                f"with a gradient in {first.with_gradient or 0} of {held} parameters and a norm of {first.grad_norm or 0:g}.",
                {"steps": len(found), "with_gradient": first.with_gradient, "grad_norm": first.grad_norm},
                first.id,
                clear.location,
            )
        ],
        location=clear.location,
        fix=f"Move the `zero_grad()` of {clear.location} before the backward pass of {backward.location}, or after the step.",
        limits="Gradients cleared right before more than half of an optimizer's steps would have been seen.",
    )


def _batches_thrown_away(run: Run, order: EventOrder, optimizer: int, steps: list[Step]) -> Finding | None:
    """Accumulation with the `zero_grad` inside the inner loop: only the last batch of each step counts."""
    calls = [call for call in run.root_calls if call.grad and not call.loss]
    seqs = [call.seq for call in calls]
    losing = []
    for start, step in zip([-1, *(step.seq for step in steps)], steps, strict=False):
        backwards = order.between("backward", start, step.seq)
        clears = [_last_clear(order, optimizer, earlier.seq, later.seq) for earlier, later in pairwise(backwards)]
        lost = [clear for clear in clears if clear is not None]
        fed = {call.batch for call in calls[bisect_right(seqs, start) : bisect_left(seqs, step.seq)]} - {None}
        one_line = len({event.location for event in backwards}) == 1
        if lost and len(lost) == len(clears) and one_line and len(fed) >= len(backwards):
            losing.append((step, lost))
    if len(losing) < _FEWEST_STEPS or len(losing) < _REGULAR * len(steps):
        return None
    first, lost = losing[0]
    clear = lost[0]
    return item.problem(
        f"Gradients are cleared between the backward passes of one step: {len(lost)} of {len(lost) + 1} batches are thrown away.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"Step {first.id}: {len(lost) + 1} backward passes on different batches, with `zero_grad` at {clear.location} "
                f"between them; the same at {len(losing)} of {len(steps)} steps.",
                {"steps": len(losing), "backwards": len(lost) + 1, "lost": len(lost)},
                first.id,
                clear.location,
            )
        ],
        location=clear.location,
        fix=f"Move the `zero_grad()` of {clear.location} out of the inner loop: right after `optimizer.step()`.",
        limits="Batches thrown away at 80 % or more of the steps would have been seen.",
    )
