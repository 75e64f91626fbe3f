"""Steps taken in the wrong order

## What it checks
Forward pass, backward pass, optimizer step, scheduler step: whether each happens, once, in this order, and as often as it was
built for.

## Why it hurts accuracy
An optimizer that never steps leaves the weights as they were initialised. A step before the backward pass applies the
gradients of another batch, or none. A loss propagated back twice doubles the learning rate. A scheduler that counts epochs
and is stepped after every batch takes the learning rate to nothing within the first epochs, or swings it up and down within
one; stepped before the optimizer it skips the first learning rate.

## Method
From the order of the recorded events:

- *never stepped*: backward passes were seen, an optimizer was built, it never stepped, and the weights with gradients have
  the same content at the end as at the beginning;
- *step before its backward pass*: with one optimizer, at 90 % of its steps the model was called, no backward pass followed
  until the step, and one came right after it;
- *backward twice*: at 90 % of the steps two backward passes in a row started from exactly the same loss value, with no call
  of the model and no clearing of gradients between them;
- *stepped per batch, built per epoch*: the scheduler steps as often as the optimizer, a pass over the data takes several
  steps, and the learning rate stays below a thousandth of its maximum for the last third of the run or longer; or a cosine
  that reaches its minimum after at most as many steps as there are epochs, or within one, goes up again; or several
  milestones all lie within as many steps as there are epochs, in the first quarter of the run; or an exponential decay of 3 %
  and more per batch (a factor of two decimals, as one sets per epoch) ends below 2 %;
- *counted in steps, made for epochs*: the same of a list of rates or a schedule that the optimizer goes through by itself, one
  rate per step, as MindSpore's do;
- *scheduler first*: its first step comes before the optimizer's, and its last before the optimizer's last.

## Evidence
The events in the order found, with their lines; the number of steps; the learning rate over the run and the steps per epoch.

## Limits
Cyclic schedules (one cycle, cyclic, warm restarts) are meant per batch and not judged. Where the passes over the data cannot
be told (streams, drawn batches) a schedule per batch is not judged. With several optimizers the order of step and backward is
not judged.

## What to do
Per batch: `zero_grad`, forward, `backward`, `optimizer.step`; in MindSpore the function of `value_and_grad`, then
`optimizer(gradients)`. Per epoch, after the batches: `scheduler.step`; or build the scheduler for steps
(`T_max = epochs * len(loader)`), as MindSpore's lists and schedules of rates always count them.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from trueline.checks.base import Item
from trueline.model import Event, Evidence, Finding
from trueline.store import Run
from trueline.views.event_order import EventOrder
from trueline.views.parameters import ParameterHistory
from trueline.views.schedules import Schedule, schedules_of
from trueline.views.source import line_of_construction
from trueline.views.words import either, words_of

ITEM = Item(__name__, __doc__)
NEEDS = ("order",)
RANK = 22
CONSEQUENCES = ("tr.02", "cg.02", "hp.01", "hp.02", "hp.03", "tr.05", "tr.08")

_FEWEST = 3
_REGULAR = 0.9
_COLLAPSED = 1e-3
_CYCLIC = {"OneCycleLR", "CyclicLR", "CosineAnnealingWarmRestarts"}
_FEWEST_PER_EPOCH = 2.0


def conclude(run: Run) -> Finding:
    backwards = run.events_of("backward")
    if not backwards:
        return ITEM.not_applicable("No backward pass was seen in this run.")
    if not run.optimizers:
        return ITEM.not_applicable("The run built no optimizer: weights are updated by hand or not at all.")
    order = EventOrder(run, "backward", "zero_grad", "optimizer_step")
    problem = (
        _never_stepped(run, backwards) or _before_backward(run, order) or _backward_twice(run, order) or _schedule_problem(run)
    )
    if problem is not None:
        return problem
    stepped = run.events_of("optimizer_step")
    if len(stepped) < _FEWEST:
        return ITEM.not_checked(f"{len(stepped)} optimizer steps were seen, and {_FEWEST} are needed to tell an order.")
    schedules = schedules_of(run)
    told = f" {len(schedules)} scheduler{'s'[: len(schedules) != 1]} stepped after the optimizer." if schedules else ""
    return ITEM.no_problem(
        f"Each of {len(stepped)} optimizer steps follows a backward pass.{told}",
        limits="An optimizer without steps, and a wrong order at 90 % of the steps, would have been seen; so would "
        "a scheduler that "
        "takes the rate below a thousandth for a third of the run."
        + (
            ""
            if all(each.epoch for each in schedules)
            else " The passes over the data are not known: schedules per batch were not judged."
        ),
    )


def _never_stepped(run: Run, backwards: list[Event]) -> Finding | None:
    idle = [number for number in run.optimizers if not any(e.subject == number for e in run.events_of("optimizer_step"))]
    if not idle or len(backwards) < _FEWEST:
        return None
    gradients = run.stats("gradient")
    if gradients and sum(bool(stat.nan or stat.inf) for stat in gradients) > len(gradients) / 2:
        # Steps are left out on purpose when their gradients are not finite: why they are not is for other items to tell.
        return None
    history = ParameterHistory(run)
    with_gradient = [each for each in history.weights if "value" in history.gradients(each) and history.always_trainable(each)]
    unheld = [each for each in with_gradient if not history.is_held(each)]
    if not unheld or not all(history.never_moved(each) and len(history.snapshots(each)) > 1 for each in unheld):
        return _idle_to_the_end(run, idle[-1], backwards)
    everything = len(idle) == len(run.optimizers)
    if everything and len(unheld) < len(with_gradient):
        return None
    number = idle[-1]
    clears = [event for event in run.events_of("zero_grad") if event.subject == number]
    own = [event for event in backwards if clears and event.seq > clears[0].seq] or backwards
    if not everything and not clears:
        return None
    optimizer = run.optimizers[number]
    built = f" (built at {optimizer.built})" if optimizer.built else ""
    where = own[0].location
    return ITEM.problem(
        f"The optimizer {optimizer.type} never takes a step: {len(backwards)} backward passes, no `{words_of(run).step}`, and "
        f"the {len(unheld)} parameters with gradients never change.",
        confidence=0.97 if everything else 0.9,
        evidence=[
            Evidence(
                f"{len(backwards)} backward passes"
                f"{either(run, pytorch=f' and {len(clears)} `zero_grad`', mindspore='')} of {optimizer.type}{built}; "
                f"{len(run.events_of('optimizer_step'))} optimizer steps in the run, none of them its own.",
                {"backwards": len(backwards), "zero_grads": len(clears), "parameters": [each.name for each in unheld[:20]]},
                location=where,
            )
        ],
        location=where,
        fix=f"Call `{words_of(run).step}` after the backward pass{f' of {where}' if where else ''}.",
        limits="An optimizer that never steps is seen from three backward passes on.",
    )


def _idle_to_the_end(run: Run, number: int, backwards: list[Event]) -> Finding | None:
    """The optimizer of a later part of the script: cleared and fed with gradients again and again, and nothing ever steps."""
    clears = [event for event in run.events_of("zero_grad") if event.subject == number]
    own = [event for event in backwards if clears and event.seq > clears[0].seq]
    last_step = max((event.seq for event in run.events_of("optimizer_step")), default=-1)
    if len(clears) < _FEWEST or len(own) < _FEWEST or clears[0].seq < last_step:
        return None
    optimizer = run.optimizers[number]
    return ITEM.problem(
        f"The optimizer {optimizer.type} never takes a step: {len(clears)} `zero_grad`, {len(own)} backward passes, no `step()`.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"{optimizer.type} (built at {optimizer.built}) is cleared {len(clears)} times and {len(own)} backward passes "
                "follow; no optimizer steps from there on to the end of the run.",
                {"backwards": len(own), "zero_grads": len(clears)},
                own[0].step,
                own[0].location,
            )
        ],
        location=own[0].location,
        fix=f"Call `optimizer.step()` after the backward pass of {own[0].location}.",
        limits="An optimizer that never steps is seen from three backward passes on.",
    )


def _before_backward(run: Run, order: EventOrder) -> Finding | None:
    stepped = run.events_of("optimizer_step")
    if len(stepped) < _FEWEST or len({event.subject for event in stepped}) > 1:
        return None
    calls = [call for call in run.root_calls if call.grad and not call.loss]
    seqs = [call.seq for call in calls]
    early = []
    for event in stepped:
        place = bisect_left(seqs, event.seq)
        if place == 0 or order.any_between("backward", seqs[place - 1], event.seq):
            continue
        following = seqs[place] if place < len(seqs) else 1 << 62
        if order.any_between("backward", event.seq, following):
            early.append(event)
    if len(early) < max(_FEWEST, _REGULAR * len(stepped)):
        return None
    first = early[0]
    backward = order.between("backward", first.seq, 1 << 62)[0]
    cleared = all(not (step.with_gradient or 0) for step in run.steps)
    effect = "there is never a gradient to apply" if cleared else "each update uses the gradients of the batch before"
    return ITEM.problem(
        f"The optimizer steps before the backward pass of its batch at {len(early)} of {len(stepped)} steps: {effect}.",
        confidence=0.95,
        evidence=[
            Evidence(
                f"Step {first.step}: the model is called, then `{words_of(run).step}` at {first.location}, then the backward "
                f"pass at {backward.location}.",
                {"early": len(early), "steps": len(stepped)},
                first.step,
                first.location,
            )
        ],
        location=first.location,
        fix=f"Move the `{words_of(run).step}` of {first.location} after the backward pass of {backward.location}.",
        limits="Steps ahead of their backward pass at 90 % of the steps would have been seen.",
    )


def _backward_twice(run: Run, order: EventOrder) -> Finding | None:
    calls = [call.seq for call in run.root_calls if call.grad and not call.loss]
    stepped = [step for step in run.steps if step.backwards]
    found = []
    for start, step in zip([-1, *(step.seq for step in stepped)], stepped, strict=False):
        for first, second in pairwise(order.between("backward", start, step.seq)):
            called = bisect_left(calls, first.seq) != bisect_left(calls, second.seq)
            same = first.value is not None and first.value == second.value and first.value != 0
            if same and not called and not order.any_between("zero_grad", first.seq, second.seq):
                found.append((step, first, second))
                break
    if not calls or len(found) < max(2, _REGULAR * len(stepped)):
        return None
    step, first, second = found[0]
    return ITEM.problem(
        f"The same loss is propagated back twice before the optimizer step, at {len(found)} of {len(stepped)} steps: "
        "its gradients count double.",
        confidence=0.95,
        evidence=[
            Evidence(
                f"Step {step.id}: backward passes at {first.location} and {second.location} from the loss "
                f"{first.value:.6g}, without "
                "a call of the model between them.",
                {"steps": len(found), "loss": first.value},
                step.id,
                second.location,
            )
        ],
        location=second.location,
        fix=f"Remove one of the two backward passes ({first.location}, {second.location})"
        + either(run, pytorch=", and `retain_graph` with it.", mindspore="."),
        limits="Two passes from the same loss at 90 % of the steps would have been seen.",
    )


def _schedule_problem(run: Run) -> Finding | None:
    for schedule in schedules_of(run):
        if schedule.optimizer_steps:
            why = _built_per_epoch(schedule)
            if schedule.given is not None:
                problem = _counted_in_epochs(schedule, why) if why else None
            else:
                problem = _per_batch(run, schedule, why) if why else _scheduler_first(schedule)
            if problem is not None:
                return problem
    return None


def _built_per_epoch(schedule: Schedule) -> str | None:
    """Why a scheduler that is stepped after every batch must have been meant for epochs; None when it need not."""
    epoch, epochs = schedule.epoch, schedule.epochs
    if epoch is None or epochs is None or not schedule.follows_every_step or schedule.type in _CYCLIC or not schedule.rates:
        return None
    if epoch < _FEWEST_PER_EPOCH or epochs < _FEWEST_PER_EPOCH:
        return None
    rates, steps = schedule.rates, len(schedule.steps)
    highest = max(rates)
    low = next((len(rates) - place for place, rate in _backwards(rates) if rate >= _COLLAPSED * highest), len(rates) + 1) - 1
    period = schedule.turning_point
    if schedule.type == "CosineAnnealingLR" and period and steps >= 2 * period and (period <= epochs + 1 or period < epoch):
        return f"it reaches its minimum after {period} steps, and swings {steps // (2 * period)} times in {epochs:.0f} epochs"
    if low >= len(rates) / 3:
        return f"the rate fell below a thousandth of {highest:g} after {len(rates) - low} of {steps} steps and stayed there"
    changes = schedule.changes
    several = len(changes) > 1 and max(changes) <= min(epochs, steps / 4)
    if schedule.type == "MultiStepLR" and several and rates[-1] < highest:
        return f"its {len(changes)} milestones all lie within the first {max(changes) / epoch:.1f} of {epochs:.0f} epochs"
    gamma = schedule.decay
    rounded = gamma is not None and abs(gamma * 100 - round(gamma * 100)) < 1e-7
    if schedule.type == "ExponentialLR" and gamma is not None and rounded and gamma <= 0.97 and rates[-1] <= 0.02 * highest:
        return f"it decays by {1 - gamma:.0%} per batch, to {rates[-1] / highest:.2g} of the first rate at the end"
    return None


def _backwards(rates: list[float]) -> list[tuple[int, float]]:
    return list(enumerate(rates))[::-1]


def _per_batch(run: Run, schedule: Schedule, why: str) -> Finding:
    rates, line = schedule.rates, schedule.line
    # A framework around torch steps it where the user only built it.
    by_user = line is None or ".step(" in (line.source or "")
    place = line if by_user or line is None else line_of_construction(run, line, schedule.type) or line
    return ITEM.problem(
        f"{schedule.type} is stepped after every batch although it counts epochs: {why}.",
        confidence=0.93,
        evidence=[
            Evidence(
                f"{len(schedule.steps)} scheduler steps for {len(schedule.optimizer_steps)} optimizer steps, of which about "
                f"{schedule.epoch:.0f} make an epoch; the learning rate went from {rates[0]:.4g} to {rates[-1]:.4g} "
                f"(lowest {min(rates):.4g}).",
                {
                    "scheduler_steps": len(schedule.steps),
                    "optimizer_steps": len(schedule.optimizer_steps),
                    "steps_per_epoch": schedule.epoch,
                    "first_rate": rates[0],
                    "last_rate": rates[-1],
                },
                location=schedule.line,
            )
        ],
        location=place,
        fix=f"Move the scheduler's `step()` of {schedule.line} out of the batch loop, to the end of the epoch; or give "
        f"{schedule.type} its settings in steps (times {schedule.epoch:.0f}).",
        limits="A schedule per batch whose rate stays below a thousandth for a third of the run would have been seen.",
    )


def _counted_in_epochs(schedule: Schedule, why: str) -> Finding:
    rates = schedule.rates
    return ITEM.problem(
        f"{schedule.type} gives one learning rate per step and was made as if for epochs: {why}.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"{len(schedule.optimizer_steps)} optimizer steps, of which about {schedule.epoch:.0f} make an epoch; the "
                f"learning rate went from {rates[0]:.4g} to {rates[-1]:.4g} (lowest {min(rates):.4g}).",
                {
                    "optimizer_steps": len(schedule.optimizer_steps),
                    "steps_per_epoch": schedule.epoch,
                    "first_rate": rates[0],
                    "last_rate": rates[-1],
                },
                location=schedule.line,
            )
        ],
        location=schedule.line,
        fix=f"Count the schedule of {schedule.line} in steps: {schedule.epoch:.0f} make an epoch (step_per_epoch, decay_steps).",
        limits="A schedule whose rate stays below a thousandth for a third of the run would have been seen.",
    )


def _scheduler_first(schedule: Schedule) -> Finding | None:
    """The scheduler's first step before the optimizer's: the first rate is never used, or for too short a time."""
    first, last = schedule.optimizer_steps[0], schedule.optimizer_steps[-1]
    early = [event for event in schedule.steps if event.seq < first.seq]
    if len(early) != 1 or len(schedule.steps) < 2 or schedule.steps[-1].seq > last.seq or len(schedule.rates) < 2:
        return None
    skipped = schedule.rates[0] != schedule.rates[1]
    plain_call = ".step()" in ((early[0].location.source if early[0].location else None) or "").replace(" ", "")
    if not plain_call or schedule.rates[1] > schedule.rates[0]:
        return None
    effect = (
        f"the first learning rate ({schedule.rates[0]:g}) is never used, training starts at {schedule.rates[1]:g}"
        if skipped
        else "every change of the learning rate comes one step of the schedule early"
    )
    return ITEM.problem(
        f"{schedule.type} is stepped before the optimizer: {effect}.",
        confidence=0.9 if skipped else 0.75,
        evidence=[
            Evidence(
                f"The scheduler's first step at {early[0].location} comes before the first optimizer step at "
                f"{first.location}, and no "
                "scheduler step comes after the last.",
                {"rates": schedule.rates[:5], "scheduler_steps": len(schedule.steps)},
                early[0].step,
                early[0].location,
            )
        ],
        location=early[0].location,
        fix=f"Move the `step()` of {early[0].location} after the optimizer's steps, to the end of the epoch.",
        limits="A scheduler whose first step comes before the optimizer's would have been seen.",
    )
