"""Learning rate too high or too low

## What it checks
Whether the steps of an optimizer are so large that training is thrown off, or so small that it does not get under way.

## Why it hurts accuracy
Beyond a certain step size each update overshoots: the loss rises, units die, and the model ends no better than a constant
guess, or at NaN. Far below it the weights stay what the initialisation made them.

## Method
The curve of the losses, one per optimizer, is read together with the size of the updates: the length of what a step added to the
weights over the length of the weights (1e-3 is usual), at sampled steps. Where the loss is one of the framework's loss functions,
the cost of the best constant guess is known: the entropy of the labels, or the spread of the target values.

- *Blown up*: the loss grew to 100 times its first value or more before it stopped being a finite number, and the updates were
  larger than 10 % of the weights; or an update before that was as long as the weights themselves.
- *Thrown off*: the loss rose to at least three times its first value and the guess (block means of five steps), or 1.5 times
  while it ends no better than a guess; it has not recovered: the second half's mean is above 0.7 of the guess and has no falling
  trend (Mann-Kendall on block means, p < 0.01); and updates were above 10 % of the weights. For losses whose guess is
  not known: a rise to 1000 times the first value that stays.
- *Too low*: a network that was not loaded; all steps together moved its weights by less than 2 % of their size, at less than
  3e-5 per step; the loss did not fall by more than 10 %, with an upper 99 % bound; and there was something to learn from: the
  gradients are as large as at the start, and large enough that a change of the weights by their own size would change the
  loss by a tenth of itself. Or, over at least 100 steps of less than 3e-4 and 20 % in all, a loss that is still above 0.7 of the
  guess and falls in a straight line: by as much in the last third as in the one before. A rate of zero is always reported.
  The same for weights that have moved by up to 50 % while the rate rose at nearly every step to the end, and the loss is no
  better than a guess: a warm-up that is longer than the run.
- *Lowered too soon*: a schedule that waits for a plateau is told a loss and waits for it to rise, or an accuracy and waits for it
  to fall (correlation of at least 0.85, over at least 6 steps, with the training loss or with the share of evaluated samples
  that are right), and has halved the rate.

Several optimizers that train against each other (a GAN) and line searches (LBFGS) have no curve that could be read so.

## Evidence
First and last loss, the guess, the peak, the learning rate, the size of the updates, the way of the weights.

## Limits
Rates that merely make training slower, or noisier, than it could be are not reported: that takes reruns at several rates. Runs
of fewer than 20 steps (too high) or 50 steps (too low) are not judged, unless the loss blows up.
An optimizer whose steps cannot be judged leaves the item not checked, whatever others show.

## What to do
Divide the rate by ten (too high) or multiply it by ten (too low) until the loss falls steadily; usual starting points are
1e-3 for Adam and 0.01 to 0.1 for SGD. A warm-up helps where only the first steps are unstable.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from trueline.checks.base import Item
from trueline.checks.hp_01_learning_rate.plateaus import WrongDirection, wrong_direction
from trueline.checks.parts import Part, worst_of
from trueline.model import Evidence, Finding, HyperParameter
from trueline.store import Run
from trueline.views.curve import Curve, alternate, block_means, training_curves, trend
from trueline.views.parameters import name_of_optimizer
from trueline.views.source import line_of_construction
from trueline.views.update_sizes import (
    UpdateSize,
    farthest_way,
    from_scratch,
    place_of_rate,
    rate_at,
    rates,
    schedule_of,
    update_sizes,
    weight_matrices,
)

ITEM = Item(__name__, __doc__)
RANK = 55
CONSEQUENCES = ("mp.01", "tr.05", "hp.02", "hp.03")

_LARGE_UPDATE = 0.1
_BLOWN_UP = 100.0
# An update that is as long as the weights leaves nothing of what they were.
_BEYOND_WEIGHTS = 1.0
_THROWN_OFF = 3.0
_THROWN_TO_A_GUESS = 1.5
_NO_BETTER_THAN_A_GUESS = 0.97
_NOT_RECOVERED = 0.7
_UNKNOWN_THROWN_OFF = 1000.0
_BLOCK = 5
_BLOCKS = 12
_TREND = 0.01
_FEWEST_STEPS = 20
_FEWEST_STEPS_LOW = 50
_SMALL_UPDATE = 3e-5
_SHORT_WAY = 0.02
_SMALL_FALL = 0.1
_PULL = 0.1
_SAME_GRADIENT = 0.5
# The one-sided 99 % point of the normal distribution.
_Z99 = 2.33
_SCHEDULED = 10.0
# These overwrite the rate that the optimizer was given.
_SETS_RATE = ("OneCycleLR", "CyclicLR")
_SLOW_STEPS = 100
_NEARLY_EVERY = 0.9
_WAY_IN_WARM_UP = 0.5
_SLOW_UPDATE = 3e-4
_SLOW_WAY = 0.2
_STILL_STRAIGHT = 0.8
_BEYOND_SCATTER = 4.0
# More classes than this are a vocabulary: what a language model can reach is far above zero.
_MOST_CLASSES = 100


def conclude(run: Run) -> Finding:
    curves = training_curves(run)
    if not curves:
        return ITEM.not_applicable("No optimizer with a learning rate of its own stepped on a loss.")
    for curve in curves:
        found = _rate_of_zero(run, curve) or _blown_up(run, curve)
        if found is not None:
            return found
    turned = wrong_direction(run)
    if turned is not None:
        return _lowered_too_soon(run, turned)
    if alternate(curves):
        return ITEM.not_checked("several optimizers share the training: their losses rise and fall with each other.")
    return worst_of(Part(name_of_optimizer(run, curve.optimizer), _conclude_curve(run, curve)) for curve in curves)


def _conclude_curve(run: Run, curve: Curve) -> Finding:
    sizes = update_sizes(run, curve)
    if not sizes:
        return ITEM.not_checked("no update of a weight matrix was measured.")
    if curve.first_broken is not None:
        step = curve.steps[curve.first_broken].id
        return ITEM.not_checked(f"the loss or the gradients are no finite numbers from step {step} on.")
    if len(curve.steps) < _FEWEST_STEPS:
        return ITEM.not_checked(f"{len(curve.steps)} steps are too few to read a curve from ({_FEWEST_STEPS} are needed).")
    return _thrown_off(run, curve, sizes) or _too_low(run, curve, sizes) or _nothing_found(curve, sizes)


def _lowered_too_soon(run: Run, found: WrongDirection) -> Finding:
    rates, better = found.schedule.rates, "higher" if found.mode == "max" else "lower"
    line = found.schedule.line
    right = "min" if found.mode == "max" else "max"
    return ITEM.problem(
        f"{found.schedule.type} takes {better} values for better (mode='{found.mode}'), but is told a measure that goes with "
        f"{found.like}: it lowers the rate from {max(rates):.3g} to {min(rates):.3g} while training improves.",
        confidence=0.85,
        evidence=[
            Evidence(
                f"From {found.measure[0]:.4g} to {found.measure[-1]:.4g} in {len(found.measure)} steps of the schedule; "
                f"correlation with {found.like} {found.correlation:.2f}.",
                {"measure": found.measure, "mode": found.mode, "correlation": found.correlation},
            )
        ],
        location=(line and line_of_construction(run, line, found.schedule.type)) or line,
        fix=f"Build {found.schedule.type} with mode='{right}'.",
        limits="A schedule in the wrong mode that has halved the rate would have been seen.",
    )


def _rate_of_zero(run: Run, curve: Curve) -> Finding | None:
    known = [one for one in run.hyperparameters if one.optimizer == curve.optimizer and one.name == "lr"]
    if len(curve.steps) < _FEWEST_STEPS or not known or any(one.value != 0 for one in known):
        return None
    return ITEM.problem(
        f"The learning rate is 0 at all {len(curve.steps)} steps: nothing is learned.",
        confidence=0.95,
        evidence=[Evidence("No parameter group ever had another rate.", {"lr": 0.0})],
        fix="Give the optimizer a learning rate above zero, and look for a schedule that sets it to zero.",
        location=place_of_rate(run, curve.optimizer, scheduled=schedule_of(run, curve.optimizer) is not None),
        limits="A rate of exactly zero over the whole run.",
    )


def _blown_up(run: Run, curve: Curve) -> Finding | None:
    broken = curve.first_broken
    if not broken:
        return None
    before = curve.losses[:broken]
    first, largest = float(before[0]), float(np.max(before[-_BLOCK:]))
    step = curve.steps[broken].id
    near = [size for size in update_sizes(run, curve) if size.step <= step]
    thrown = max((size.typical for size in near if size.step < step), default=0.0) >= _BEYOND_WEIGHTS
    if first <= 0 or (not thrown and largest < _BLOWN_UP * max(first, curve.guess or 0.0)):
        return None
    grew = f"the loss grew from {first:.3g} to {largest:.3g}" if largest > first else "an update was as long as the weights"
    update = max((size.typical for size in near), default=0.0)
    if update < _LARGE_UPDATE and not _steps_beyond_weights(run, curve, broken):
        return None
    return _problem_high(
        run,
        curve,
        f"The learning rate is too high: {grew}, and the loss was no finite number any more at step {step}.",
        [
            Evidence(
                f"Loss {first:.4g} at the first step, {largest:.4g} shortly before step {step}, where it is not finite.",
                {"first": first, "largest": largest},
                step,
            )
        ],
        near,
        step,
        0.9,
    )


def _steps_beyond_weights(run: Run, curve: Curve, broken: int) -> bool:
    """Between sampled steps: rate times gradient norm, the length of plain SGD's update, against that of the weights."""
    kind = run.optimizers[curve.optimizer].type
    wanted = {parameter.id for parameter in weight_matrices(run, curve.optimizer)}
    sizes = [stat.l2 or 0.0 for stat in run.stats("parameter") if stat.step == -1 and stat.subject in wanted]
    known = rates(run, curve.optimizer)
    if kind not in ("SGD", "Momentum") or not known or not any(sizes):
        return False
    steps = curve.steps[max(0, broken - _BLOCK) : broken]
    ways = [(rate_at(known, step.id) or 0.0) * (step.grad_norm or 0.0) for step in steps]
    return max(ways, default=0.0) >= _LARGE_UPDATE * float(np.linalg.norm(sizes))


def _thrown_off(run: Run, curve: Curve, sizes: list[UpdateSize]) -> Finding | None:
    first, guess = float(curve.losses[0]), curve.guess
    if first <= 0 or float(curve.losses.min()) < 0:
        return None
    blocks = block_means(curve.losses, max(len(curve.losses) // _BLOCK, 2))
    place = int(np.argmax(blocks))
    peak, settled = float(blocks[place]), float(curve.late.mean())
    base = max(first, guess or 0.0)
    if guess is None:
        unrecovered = peak >= _UNKNOWN_THROWN_OFF * base and settled >= _UNKNOWN_THROWN_OFF * first
    else:
        at_guess = settled >= _NO_BETTER_THAN_A_GUESS * guess
        unrecovered = settled >= _NOT_RECOVERED * guess and peak >= (_THROWN_TO_A_GUESS if at_guess else _THROWN_OFF) * base
    tau, chance = trend(block_means(curve.late, _BLOCKS))
    still_falling = tau < 0 and chance < _TREND and (guess is None or settled < guess)
    large = [size for size in sizes if size.typical >= _LARGE_UPDATE]
    if not unrecovered or still_falling or not large:
        return None
    step = curve.steps[min(place * _BLOCK, len(curve.steps) - 1)].id
    compared = f", where a constant guess costs {guess:.3g}" if guess is not None else ""
    return _problem_high(
        run,
        curve,
        f"The learning rate is too high: the loss rose from {first:.3g} to {peak:.3g} and stays at {settled:.3g}{compared}.",
        [
            Evidence(
                f"Loss {first:.4g} at the first step, {peak:.4g} at its worst (mean of {_BLOCK} steps from step {step}), "
                f"{settled:.4g} in the second half{compared}.",
                {"first": first, "peak": peak, "settled": settled, "guess": guess},
                step,
            )
        ],
        large,
        step,
        0.85 if peak >= _THROWN_OFF * base else 0.7,
    )


def _problem_high(
    run: Run, curve: Curve, summary: str, evidence: list[Evidence], sizes: list[UpdateSize], step: int, confidence: float
) -> Finding:
    known = rates(run, curve.optimizer)
    rate, start = rate_at(known, step), rate_at(known, curve.steps[0].id)
    peak = max((float(one.value) for one in known if one.step <= step), default=None)
    schedule = schedule_of(run, curve.optimizer)
    sets_rate = schedule is not None and schedule.detail.get("type") in _SETS_RATE
    scheduled = sets_rate or bool(start is not None and peak is not None and peak >= _SCHEDULED * start)
    kind = run.optimizers[curve.optimizer].type
    if rate is not None:
        evidence.append(
            Evidence(f"{kind} with a learning rate of {rate:.3g} at step {step}.", {"lr": rate, "highest": peak}, step)
        )
    if sizes:
        worst = max(sizes, key=lambda size: size.typical)
        evidence.append(
            Evidence(
                f"The update of step {worst.step} is {worst.typical:.2g} times as long as the weights it changes (median of the "
                "weight matrices; 0.001 is usual).",
                {"update_to_weight": worst.typical},
                worst.step,
            )
        )
    told = "the schedule's peak" if scheduled else "the learning rate"
    return ITEM.problem(
        summary,
        confidence=confidence,
        evidence=evidence,
        fix=f"Lower {told}: divide it by ten until the loss falls from the first steps on (usual: 1e-3 for Adam, 0.01 to 0.1 "
        "for SGD).",
        location=place_of_rate(run, curve.optimizer, scheduled=scheduled),
        limits=f"Seen: a loss {_THROWN_OFF:g} times its first value that does not recover, with updates above "
        f"{_LARGE_UPDATE:.0%} of the weights. A rate that only makes training noisier is not.",
    )


def _too_low(run: Run, curve: Curve, sizes: list[UpdateSize]) -> Finding | None:
    if len(curve.steps) < _FEWEST_STEPS_LOW or not from_scratch(run, curve):
        return None
    way, largest = farthest_way(sizes, curve), max(size.most for size in sizes)
    pulls = np.array([size.pull / max(_loss_at(curve, size.step), 1e-30) for size in sizes])
    half = len(pulls) // 2
    pulled = np.median(pulls) >= _PULL and np.median(pulls[half:]) >= _SAME_GRADIENT * np.median(pulls[: half + 1])
    if not pulled or not largest:
        return None
    fifth = max(len(curve.losses) // 5, 5)
    head, tail = curve.losses[:fifth], curve.losses[-fifth:]
    error = math.sqrt(float(head.var(ddof=1)) / len(head) + float(tail.var(ddof=1)) / len(tail))
    first, last = float(head.mean()), float(tail.mean())
    most = (first - last + _Z99 * error) / first if first > 0 else math.inf
    # A network that is no better than a guess and whose weights have hardly moved is not at a minimum, however it got there.
    at_guess = curve.guess is not None and last >= _NO_BETTER_THAN_A_GUESS * curve.guess
    stands_still = way <= _SHORT_WAY and (largest <= _SMALL_UPDATE or at_guess) and most <= _SMALL_FALL
    known = rates(run, curve.optimizer)
    in_warm_up = way <= _WAY_IN_WARM_UP and at_guess and most <= _SMALL_FALL and _rises_throughout(curve, known)
    crawls = way <= _SLOW_WAY and largest <= _SLOW_UPDATE and _crawls(curve)
    if not stands_still and not in_warm_up and not crawls:
        return None
    rate = rate_at(known, curve.steps[len(curve.steps) // 2].id)
    scheduled = schedule_of(run, curve.optimizer) is not None and len({one.value for one in known}) > 1
    told = "" if rate is None else f" ({rate:.3g})"
    count = len(curve.steps)
    return ITEM.problem(
        f"The learning rate{told} is too low: {count} steps moved no weight matrix by more than {way:.2%} of its size, and the "
        f"loss went from {first:.4g} to {last:.4g}.",
        confidence=0.85 if stands_still or in_warm_up else 0.65,
        evidence=[
            Evidence(
                f"Mean loss {first:.5g} in the first fifth of the steps, {last:.5g} in the last: a fall of at most "
                f"{max(most, 0):.2%} (99 % bound).",
                {"first": first, "last": last, "bound": most, "guess": curve.guess},
            ),
            Evidence(
                f"An update is at most {largest:.2g} times as long as the weights (0.001 is usual); all {count} together at most "
                f"{way:.2g} times.",
                {"update_to_weight": largest, "way": way, "lr": rate},
            ),
            Evidence(
                "The gradients are not small: a change of the weights by their own size would change the loss by "
                f"{np.median(pulls):.3g} times its value, at the end as at the start.",
                {"pull": float(np.median(pulls))},
            ),
        ],
        fix="Shorten the warm-up: the rate was still rising when the run ended."
        if in_warm_up
        else "Raise the learning rate: multiply it by ten until the loss falls (usual: 1e-3 for Adam, 0.01 to 0.1 for SGD).",
        location=place_of_rate(run, curve.optimizer, scheduled=scheduled),
        limits=f"Seen: weights that move by less than {_SHORT_WAY:.0%} of their size in {_FEWEST_STEPS_LOW} steps or more while "
        f"the loss falls by less than {_SMALL_FALL:.0%}, or by less than {_SLOW_WAY:.0%} in {_SLOW_STEPS} or more while it "
        "falls in a straight line.",
    )


def _rises_throughout(curve: Curve, known: list[HyperParameter]) -> bool:
    """Whether the rate rose at nearly every step to the end: a warm-up that is longer than the run."""
    values = [float(one.value) for one in known if isinstance(one.value, int | float)]
    return len(values) >= _NEARLY_EVERY * len(curve.steps) and all(after > before for before, after in pairwise(values))


def _crawls(curve: Curve) -> bool:
    """Whether the loss falls in a straight line from which it is still far from leaving."""
    if curve.guess is None or len(curve.losses) < _SLOW_STEPS or (curve.classes or 0) > _MOST_CLASSES:
        return False
    first, middle, last = np.array_split(curve.losses, 3)
    error = math.sqrt(sum(float(part.var(ddof=1)) / len(part) for part in (middle, last)))
    before, lately = float(first.mean() - middle.mean()), float(middle.mean() - last.mean())
    straight = lately >= _STILL_STRAIGHT * before and lately > _BEYOND_SCATTER * error
    return straight and float(last.mean()) >= _NOT_RECOVERED * curve.guess


def _loss_at(curve: Curve, step: int) -> float:
    return next(float(abs(loss)) for one, loss in zip(curve.steps, curve.losses, strict=True) if one.id == step)


def _nothing_found(curve: Curve, sizes: list[UpdateSize]) -> Finding:
    typical = float(np.median([size.typical for size in sizes]))
    return ITEM.no_problem(
        f"The loss went from {curve.losses[0]:.3g} to {curve.losses[-1]:.3g} with updates of {typical:.2g} of the weights' size.",
        limits=f"Seen would have been a loss that rises to {_THROWN_OFF:g} times its first value and does not recover"
        + (
            f", or {len(curve.steps)} steps that move the weights by less than {_SHORT_WAY:.0%}"
            if len(curve.steps) >= _FEWEST_STEPS_LOW
            else f" ({len(curve.steps)} steps are too few to see a rate that is too low)"
        )
        + ". Whether another rate were better takes reruns.",
        confidence=0.7,
        evidence=[
            Evidence(
                f"{len(curve.steps)} steps, updates between {min(size.typical for size in sizes):.2g} and "
                f"{max(size.typical for size in sizes):.2g} times the weights' size.",
                {"update_to_weight": typical, "guess": curve.guess},
            )
        ],
    )
