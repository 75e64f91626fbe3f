"""Loss scale wrong for the number format

## What it checks
Whether gradients that are computed in float16 are scaled at all, whether a scale is taken out again before the optimizer uses
the gradients, and whether a gradient scaler found a scale that works.

## Why it hurts accuracy
The smallest normal number of float16 is 2^-14 (0.00006), the smallest of all 2^-24. Gradients below the first lose digits,
those below the second become zero: the layers far from the loss stop learning. A scale that is too large makes gradients
infinite, and the scaler leaves the steps out. A scale that is never taken out multiplies the learning rate by it.

## Method
- *never unscaled*: the optimizer steps on its own after the backward pass of a scaled loss, with neither `unscale_` nor
  `scaler.step` between them, at 90 % of the steps, and the gradient norms are above 1 at half of the steps (gradients that
  were divided by hand are not);
- *not told to the optimizer*: a training step that multiplies gradients by a fixed scale, and an optimizer that should divide
  by it and divides by another number (MindSpore's `sens` and `loss_scale`);
- *all vanish*: no scaler, and the gradients of all module outputs in float16 are zero throughout at nine of ten sampled steps
  whose loss is not;
- *steps left out*: after the scaler's first success, more than a fifth of the steps are skipped, tested against a rate of one
  in ten (binomial, p < 0.001); or more than 24 in a row before it; or the scale has fallen below 1 and steps are still skipped;
- *overflow*: no scaler scaled the loss, and gradients of module outputs in float16 are not finite at nine of ten sampled steps
  whose loss is;
- *float16 without scaling*: the gradients of module outputs are float16, neither a scaler nor the script itself (a factor of 8
  or more between loss and backward pass) scaled the loss, and in some module's gradient at least 5 % of the values that are
  no zeros lie below 2^-14. This share is a lower bound by Markov's inequality (of values with a mean of m at most m / t
  exceed t) or is counted from zeros that appeared at modules whose gradient had none in the first steps.

## Evidence
The format of the gradients, the module with the smallest ones, its mean, its zeros at the first and at the last sampled step;
the scale, the skipped steps, and a scale to use: the largest power of two that keeps the largest gradient below 65504 / 16.

## Limits
Gradients are looked at in sampled steps. A scale by hand that is too small is not seen.

## What to do
Use `torch.amp.GradScaler` around the backward pass and the step, with its default settings, in MindSpore `amp.DynamicLossScaler`
or a loss scale manager whose scale the optimizer is told (`loss_scale`); or train in bfloat16, whose range is that of float32.
"""

from __future__ import annotations

import math

from trueline.checks.base import Item
from trueline.model import Event, Evidence, Finding, TensorStat
from trueline.store import Run
from trueline.views.binomial import log10_binomial_tail
from trueline.views.event_order import EventOrder
from trueline.views.loss_factor import loss_factor
from trueline.views.words import either, words_of

ITEM = Item(__name__, __doc__)
RANK = 50
CONSEQUENCES = ("mp.01", "tr.05", "hp.01", "hp.02")
GAINS = ("gradients",)

_LARGEST = 65504.0
_SMALLEST_NORMAL = 2.0**-14
_LOST = 0.05
_FEWEST_STEPS = 3
_TOLERATED = 0.1
_TOO_MANY = 0.2
# Weights of losses are smaller than scales.
_SCALED_BY_HAND = 8.0


def conclude(run: Run) -> Finding:
    scales = run.events_of("scale")
    half = [stat for stat in run.stats("output_grad") if stat.dtype == "float16"]
    if not scales and not half:
        return ITEM.not_applicable("No loss was scaled and no gradient in float16 was seen: there is no scale to set.")
    if len(run.steps) < _FEWEST_STEPS:
        return ITEM.not_checked(f"{len(run.steps)} steps were recorded, and {_FEWEST_STEPS} are needed.")
    problem = (
        (_never_unscaled(run) or _left_out(run))
        if scales
        else _overflowing(run, half) or _vanished(run, half) or _without_scaling(run, half)
    )
    if problem is not None:
        return problem
    skipped = sum(bool(event.detail.get("skipped")) for event in run.events_of("optimizer_step"))
    told = (
        f"A scaler scaled the loss, and {skipped} of {len(run.steps)} steps were left out" if scales else "Gradients are in range"
    )
    return ITEM.no_problem(
        f"{told}.",
        limits="A scale that is never taken out, more than a fifth of the steps left out, and without scaling 5 % of a module's "
        "gradients below 2^-14 at a sampled step would have been seen.",
    )


def _never_unscaled(run: Run) -> Finding | None:
    order = EventOrder(run, "scale", "backward", "unscale", "scaler_step")
    stepped = run.events_of("optimizer_step")
    wrong: list[tuple[Event, Event]] = []
    start = -1
    for event in stepped:
        scale = next(iter(order.between("scale", start, event.seq)), None)
        restored = order.any_between("unscale", start, event.seq) or order.any_between("scaler_step", start, event.seq)
        # Inside of a compiled step it is not seen where a scaler is used.
        if scale is not None and (scale.value or 2.0) > 1 and not restored and not scale.detail.get("compiled"):
            wrong.append((scale, event))
        start = event.seq
    if len(wrong) < max(_FEWEST_STEPS, 0.9 * len(stepped)):
        return None
    norms = [step.grad_norm for step in run.steps if step.grad_norm is not None and math.isfinite(step.grad_norm)]
    # Gradients that were divided by hand have the size of gradients again; those times 65536 do not.
    if norms and sum(norm > 1 for norm in norms) < len(norms) / 2:
        return None
    scale, step = wrong[0]
    if "taken_out" in scale.detail:
        return _not_told_to_the_optimizer(run, scale, step, len(wrong))
    return ITEM.problem(
        f"The loss is multiplied by {scale.value or 0:g} and the optimizer uses the gradients as they are, at {len(wrong)} of "
        f"{len(stepped)} steps: they are too large by this factor.",
        confidence=0.95,
        evidence=[
            Evidence(
                f"Step {step.step}: scaled at {scale.location}, then `{words_of(run).step}` at {step.location}, without "
                f"{either(run, pytorch='`scaler.step` or `unscale_`', mindspore='`scaler.unscale`')} between them; the median "
                f"gradient norm is {sorted(norms)[len(norms) // 2] if norms else math.nan:.4g}.",
                {"scale": scale.value, "steps": len(wrong)},
                step.step,
                step.location,
            )
        ],
        location=step.location,
        fix=either(
            run,
            pytorch=f"Replace the `step()` of {step.location} by `scaler.step(optimizer)` and `scaler.update()`.",
            mindspore=f"Give the optimizer of {step.location} what `scaler.unscale(gradients)` returns.",
        ),
        limits="A scale that is never taken out at 90 % of the steps would have been seen.",
    )


def _not_told_to_the_optimizer(run: Run, scale: Event, step: Event, count: int) -> Finding:
    """A fixed scale that the optimizer has to take out, and that it was not told of."""
    optimizer = run.optimizers[step.subject or 0]
    return ITEM.problem(
        f"The gradients are multiplied by {scale.value:g} and {optimizer.type} divides them by {scale.detail['taken_out']:g}, at "
        f"{count} steps: they are too large by this factor.",
        confidence=0.95,
        evidence=[
            Evidence(
                f"The training step scales by {scale.value:g}; the optimizer built at {optimizer.built} has a loss_scale of "
                f"{scale.detail['taken_out']:g}.",
                {"scale": scale.value, "loss_scale": scale.detail["taken_out"], "steps": count},
                step.step,
                optimizer.built,
            )
        ],
        location=optimizer.built or step.location,
        fix=f"Give the optimizer `loss_scale={scale.value:g}`, the scale of the loss scale manager.",
        limits="A scale that is never taken out at 90 % of the steps would have been seen.",
    )


# From 2 ** 16, where scalers start, sixteen halvings lead to no scale at all.
_HALVINGS = 24


def _left_out(run: Run) -> Finding | None:
    stepped = run.events_of("optimizer_step")
    skipped = [bool(event.detail.get("skipped")) for event in stepped]
    updates = [event for event in run.events_of("scaler_update") if event.value is not None]
    floor = bool(updates) and (updates[-1].value or 0) < 1 and any(skipped[-3:])
    first = skipped.index(False) if False in skipped else len(skipped)
    later = skipped[first:]
    count = sum(later)
    often = len(later) > 0 and count > _TOO_MANY * len(later) and log10_binomial_tail(count, len(later), _TOLERATED) < -3
    if (not floor and not often and first <= _HALVINGS) or _for_want_of_a_loss(run, stepped):
        return None
    scales = run.events_of("scale")
    where = scales[0].location
    values = [event.value for event in scales if event.value is not None]
    reason = (
        f"the scale has fallen to {updates[-1].value:g}, below 1, and steps are still left out"
        if floor
        else f"{count} of {len(later)} steps after the first good one are left out"
        if often
        else f"the first {first} steps are left out before one is good"
    )
    return ITEM.problem(
        f"The gradient scaler does not find a scale that works: {reason}.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"{sum(skipped)} of {len(skipped)} steps were left out because gradients were not finite; the scale was between "
                f"{min(values, default=math.nan):g} and {max(values, default=math.nan):g}.",
                {"skipped": sum(skipped), "steps": len(skipped), "lowest": min(values, default=None)},
                location=where,
            )
        ],
        location=where,
        fix=either(
            run,
            pytorch="Build the scaler with its default settings (growth only after 2000 good steps)",
            mindspore="Build the scaler with the usual settings (scale_factor=2, scale_window=2000)",
        )
        + "; where the scale falls below 1, look for the operation that is not finite by itself and compute it in float32.",
        limits="More than a fifth of the steps left out (binomial test against a tenth, p < 0.001) would have been seen.",
    )


def _for_want_of_a_loss(run: Run, stepped: list[Event]) -> bool:
    """Whether steps were left out because the loss itself was not finite, which no scale can mend (mp.01)."""
    skipped = {event.step for event in stepped if event.detail.get("skipped")}
    losses = [step.loss for step in run.steps if step.id in skipped and step.loss is not None]
    return sum(not math.isfinite(loss) for loss in losses) > len(losses) / 2


def _overflowing(run: Run, half: list[TensorStat]) -> Finding | None:
    """Gradients in float16 that are not finite at nearly every step looked at, while the loss is."""
    finite = {step.id for step in run.steps if step.loss is not None and math.isfinite(step.loss)}
    looked_at = {stat.step for stat in half if stat.step in finite}
    broken = [stat for stat in half if stat.step in finite and (stat.nan or stat.inf)]
    steps = {stat.step for stat in broken}
    if len(steps) < max(_FEWEST_STEPS, 0.9 * len(looked_at)):
        return None
    worst = broken[0]
    module = run.modules[worst.subject]
    backward = run.events_of("backward")[0].location
    return ITEM.problem(
        f"Gradients overflow float16: they are not finite at {len(steps)} of {len(looked_at)} steps looked at, while the loss "
        "is. What the loss is multiplied by is too large.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"Step {worst.step}: the gradient of the output of {module.name} in float16 holds {worst.nan} NaN and "
                f"{worst.inf} infinite values; what the backward pass started from is {run.steps[worst.step].loss:g}.",
                {"steps": len(steps), "of": len(looked_at), "module": module.name},
                worst.step,
                module.called,
            )
        ],
        location=backward.of_module(module.name) if backward else None,
        fix="Start with a scale of 2 ** 16 or less and halve it whenever gradients overflow, as "
        f"{either(run, pytorch='torch.amp.GradScaler', mindspore='amp.DynamicLossScaler')} does.",
        limits="Gradients in float16 that are not finite at nine of ten sampled steps would have been seen.",
    )


def _vanished(run: Run, half: list[TensorStat]) -> Finding | None:
    """Gradients in float16 of which nothing is left, in any module, at nearly every step looked at."""
    losses = {step.id: step.loss for step in run.steps if step.loss is not None and math.isfinite(step.loss) and step.loss != 0}
    looked_at = {stat.step for stat in half if stat.step in losses}
    alive = {stat.step for stat in half if stat.zero_share is None or stat.zero_share < 1}
    empty = looked_at - alive
    if len(empty) < max(_FEWEST_STEPS, 0.9 * len(looked_at)) or (loss_factor(run) or 1.0) >= _SCALED_BY_HAND:
        return None
    step = min(empty)
    backward = run.events_of("backward")[0].location
    return ITEM.problem(
        f"Gradients are computed in float16 without a loss scale, and all of them vanish: every one is zero at {len(empty)} of "
        f"{len(looked_at)} steps looked at.",
        confidence=0.85,
        evidence=[
            Evidence(
                f"Step {step}: the loss is {losses[step]:.3g}, and the gradients of the outputs of all "
                f"{len({stat.subject for stat in half})} modules in float16, whose smallest number is 6e-08, are all zero.",
                {"steps": len(empty), "of": len(looked_at), "loss": losses[step]},
                step,
                backward,
            )
        ],
        location=backward,
        fix="Scale the loss (a dynamic loss scaler, starting at 2 ** 16), or compute the loss in a unit in which it is about 1.",
        limits="Gradients in float16 that are all zero at nine of ten sampled steps would have been seen.",
    )


def _lost_share(stat: TensorStat, zeros_at_first: float) -> float:
    """At least this share of a gradient's values that are no zeros by structure is zero or below the smallest normal number."""
    if stat.abs_mean is None or stat.zero_share is None or stat.zero_share >= 1:
        return 0.0
    mean = stat.abs_mean / (1 - stat.zero_share)
    below = max(0.0, 1 - mean / _SMALLEST_NORMAL)
    # Only where no value was zero at first is a zero not a masked unit.
    vanished = stat.zero_share if zeros_at_first == 0 else 0.0
    return max(below, vanished)


def _without_scaling(run: Run, half: list[TensorStat]) -> Finding | None:
    if (loss_factor(run) or 1.0) >= _SCALED_BY_HAND:
        return None
    # Where gradients overflow, those that are left say nothing of a scale that is too small.
    if any(stat.nan or stat.inf for stat in half):
        return None
    first: dict[tuple[int, int], float] = {}
    for stat in half:
        first.setdefault((stat.subject, stat.position), stat.zero_share or 0.0)
    shares = [(_lost_share(stat, first[stat.subject, stat.position]), stat) for stat in half]
    share, worst = max(shares, key=lambda pair: pair[0])
    if share < _LOST:
        return None
    module = run.modules[worst.subject]
    largest = max(abs(value) for stat in half for value in (stat.min or 0.0, stat.max or 0.0))
    suggestion = 2.0 ** math.floor(math.log2(_LARGEST / 16 / largest)) if largest else 65536.0
    backward = run.events_of("backward")[0].location
    return ITEM.problem(
        f"Gradients are computed in float16 without a loss scale: at least {share:.0%} of those of {module.name} are below what "
        "float16 holds in full.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"Step {worst.step}: the gradient of the output of {module.name} has a mean size of {worst.abs_mean:.3g} and "
                f"{worst.zero_share:.0%} zeros ({first[worst.subject, worst.position]:.0%} at the first step); the "
                "smallest normal "
                "number of float16 is 6.1e-05.",
                {"share": share, "abs_mean": worst.abs_mean, "zero_share": worst.zero_share, "module": module.name},
                worst.step,
                module.called,
            ),
            Evidence(
                f"The largest gradient was {largest:.3g}: a scale of {suggestion:g} keeps it below 65504 / 16.",
                {"largest": largest, "scale": suggestion},
            ),
        ],
        location=backward.of_module(module.name) if backward else None,
        fix=either(
            run,
            pytorch="Scale the loss: `scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()` with a scale of "
            f"about {suggestion:g}, or autocast to bfloat16.",
            mindspore="Scale the loss with an `amp.DynamicLossScaler`: differentiate `scaler.scale(loss)`, and give the "
            f"optimizer `scaler.unscale(gradients)`, with a scale of about {suggestion:g}; or compute in bfloat16.",
        ),
        limits="5 % of a module's gradients below 2^-14 at a sampled step would have been seen.",
    )
