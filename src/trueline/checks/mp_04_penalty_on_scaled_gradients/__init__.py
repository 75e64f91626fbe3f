"""Gradient penalty on gradients that still hold the loss scale

## What it checks
With mixed precision the loss is multiplied by a large factor before gradients are taken. A gradient penalty (WGAN-GP, R1,
input-gradient regularisation) takes gradients inside of the loss and measures their norm. This item looks at whether such
gradients were taken of a scaled tensor and went into the loss without the scale being divided out first.

## Why it hurts accuracy
The norm is too large by the scale, its square by the square of the scale: with a scale of 65536 the penalty outweighs the
loss by orders of magnitude, and the model learns to have no gradient instead of learning its task. The scale also changes
over the run, and the strength of the penalty with it.

## Method
On the first steps every operation is recorded with where its tensors came from. From each call of `autograd.grad` that
builds a graph (`create_graph=True`) the operations are followed back, through sums, means, products and reshapes, to a
multiplication by the scaler; and the gradients are followed on to the loss that is propagated back. A division by the scale
on the way (or its square, with a weight or a count in the same number; or by another of these gradients), or an operation whose
result does not depend on the scale (normalising, a cosine), ends the way. Without a scaler, scaling by hand is recognised when
one and the same constant of at least 8 multiplies the derived tensor and a loss, and the script divides `.grad` by something.

## Evidence
The line and step of the derivative, the scale, the operation that first measures the gradients, the backward pass they reach.

## Limits
Only the first steps are traced, up to their first backward pass: a penalty that starts later, one that is propagated back
after the other terms of the loss in passes of its own, or one inside of a compiled function is not judged. A scale that
is a tensor which the script made itself is not known, and whether a division took out all of the scale is not computed: a
division of the squared norm by the scale instead of its square passes.

## What to do
Take the penalty's gradients of the unscaled output, and scale the final loss only; or divide the gradients by
`scaler.get_scale()` (MindSpore: `scaler.scale_value`) before their norm.
"""

from __future__ import annotations

from trueline.checks.base import Item
from trueline.checks.mp_04_penalty_on_scaled_gradients.scaled_derivatives import Fate, ScaledDerivative, ScaledDerivatives
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.words import either

item = Item(__name__, __doc__)
NEEDS = ("operations",)

CONSEQUENCES = ("mp.01", "mp.02", "hp.01", "tr.05")
RANK = 29

_LIMITS = (
    "On the traced first steps a single derivative of a scaled tensor that reaches the loss undivided would have been seen, for "
    "scales of a scaler other than 1 and for constants of at least 8."
)


def conclude(run: Run) -> Finding:
    derivatives = ScaledDerivatives(run)
    if not derivatives.events:
        return item.not_applicable("The script takes no gradients inside of its loss: there is no gradient penalty.")
    found = derivatives.found
    wrong = [each for each in found if each.fate is Fate.REACHED_LOSS]
    if wrong:
        return _problem(run, wrong)
    if not derivatives.scalings and not found:
        return item.not_applicable("Gradients are taken inside of the loss, and no loss scale was seen.")
    if any(each.fate is Fate.UNKNOWN for each in found):
        return item.not_checked(
            "gradients were taken of a scaled tensor, and the trace does not tell whether they were divided by the scale."
        )
    if not derivatives.traced:
        return item.not_checked(
            "the gradients inside of the loss were not taken where operations are traced: on the first steps, before their first "
            "backward pass, outside of compiled functions."
        )
    if found:
        summary = (
            f"Gradients taken of a scaled tensor are divided by the scale before they enter the loss ({found[0].event.location})."
        )
    else:
        summary = "The gradients inside of the loss are taken of unscaled tensors; only what is propagated back is scaled."
    return item.no_problem(summary, limits=_LIMITS)


def _problem(run: Run, wrong: list[ScaledDerivative]) -> Finding:
    first = wrong[0]
    scale = "the scale" if first.scale is None else f"{first.scale:g}"
    event, measure, backward = first.event, first.measure, first.backward
    evidence = [
        Evidence(
            f"Step {event.step}: gradients are taken with a graph of their own, of a tensor that was multiplied by {scale}"
            f"{' by hand' if first.by_hand else ' by the gradient scaler'}.",
            {"scale": first.scale, "derivatives": len({each.event.location for each in wrong})},
            event.step,
            event.location,
        )
    ]
    if measure is not None:
        evidence.append(
            Evidence(
                f"`{measure.name}` works on them before anything divided them by the scale.",
                {"operation": measure.name},
                measure.step,
                measure.location,
            )
        )
    if backward is not None:
        evidence.append(
            Evidence(
                "The loss that is propagated back contains them.", {"loss": backward.value}, backward.step, backward.location
            )
        )
    of_scaler = either(run, pytorch="`scaler.get_scale()`", mindspore="`scaler.scale_value`")
    by_scaler = of_scaler if not first.by_hand else f"the loss scale ({scale})"
    return item.problem(
        f"The gradients of the penalty are {scale} times too large: they are taken of the scaled tensor, and nothing divides "
        "them by the scale before they enter the loss."
        if first.scale is not None
        else "The gradients of the penalty are taken of the scaled tensor, and nothing divides them by the scale before they "
        "enter the loss.",
        confidence=0.8 if first.by_hand else 0.9,
        evidence=evidence,
        location=event.location,
        fix="Take these gradients of the unscaled output and scale the final loss only, or divide them by "
        f"{by_scaler} before the norm is computed.",
        limits=_LIMITS,
    )
