"""Overflow: a value became NaN or infinite

## What it checks
Whether every loss and every gradient of the training was a finite number; if not, at which step and in which operation the
first value went wrong: the logarithm of zero, a division by zero, an exponential that overflows, a root whose derivative is
infinite, a number beyond the range of float16 (65504).

## Why it hurts accuracy
One NaN in the loss makes every gradient NaN, and the update then makes every weight NaN. From there on the model predicts
nothing; where the loss is only printed now and then this goes unnoticed until the evaluation.

## Method
Loss and gradient norm of every step are looked at. The first that is not finite is placed by what was recorded around it:
weights that were not finite before the step (the update before spoilt them), an input that was not finite already, the first
module whose output is not finite, or the loss function. The operation is then looked for among the traced operations of the
first steps: on the way to the loss, those that have no finite value somewhere (log, sqrt, exp, div, pow, norm, acos …),
without those that are guarded by a small constant or a clamp; the first of them in the order of the forward pass is named.
Where the loss is finite and the gradients are not, it is the first operation in float16 before an output that is infinite, else
the operation nearest to the last module, in the order of the
forward pass, whose gradient or updated weight is not finite, among those whose derivative can be infinite. Overflows that a
gradient scaler guards (the step is left out) are how a scaler finds its scale and are not reported.

## Evidence
The step, the phase, the module and the operation; the other candidates; outputs near to the largest number of float16; the
loss before; how many steps were finite.

## Limits
That a value was not finite is measured; which operation made it is inferred from the trace of the first steps, and the
confidence says so. Operations inside of ready-made functions have no line of their own: then the line that computes the loss
is named.

## What to do
Use the form that is stable by construction (`cross_entropy` and `logsumexp` instead of `log(softmax)`), add an epsilon inside
of the root, logarithm or denominator, clamp the exponent, or compute this operation in float32.
"""

from __future__ import annotations

import math

from trueline.checks.base import Item
from trueline.model import Evidence, Finding, NonFinite
from trueline.store import Run
from trueline.views.nonfinite import GROWING, fed_nonfinite, first_nonfinite, suspects

ITEM = Item(__name__, __doc__)
RANK = 60
CONSEQUENCES = ("hp.02", "hp.03", "tr.07")
GAINS = ("layers",)

_FLOAT16_LARGEST = 65504.0
# A loss that has grown this much before it overflowed diverged first: the operation that overflowed is where it ended.
_DIVERGED = 1e3
_STABLE_FORM = {
    "log": "add a small constant inside of the logarithm, or use log_softmax / logsigmoid, which never see the zero",
    "log2": "add a small constant inside of the logarithm",
    "log10": "add a small constant inside of the logarithm",
    "log1p": "keep its argument above -1",
    "div": "keep the denominator away from zero (clamp, or a small constant added to it)",
    "truediv": "keep the denominator away from zero (clamp, or a small constant added to it)",
    "reciprocal": "keep the denominator away from zero (clamp, or a small constant added to it)",
    "exp": "subtract the maximum first (softmax, logsumexp), or clamp the exponent",
    "sqrt": "add a small constant inside of the root: its derivative at 0 is infinite, and below 0 it has no value",
    "rsqrt": "add a small constant inside of the root",
    "norm": "add a small constant under the root: the derivative of a norm at 0 has no value",
    "pow": "add a small constant to the base, or clamp it",
    "acos": "clamp its argument to a little inside of [-1, 1]",
    "asin": "clamp its argument to a little inside of [-1, 1]",
    "cdist": "add a small constant to the squared distance before the root",
}


def conclude(run: Run) -> Finding:
    known = [step for step in run.steps if step.loss is not None or step.grad_norm is not None]
    if not run.steps:
        return ITEM.not_checked("no training step was recorded.")
    if not known:
        return ITEM.not_checked("neither a loss value nor a gradient norm is known for any step.")
    found = first_nonfinite(run)
    if found is None and "layers" in run.unseen:
        return _finite_from_outside(run, len(known))
    if found is None:
        skipped = sum(bool(event.detail.get("skipped")) for event in run.events_of("optimizer_step"))
        guarded = f" A gradient scaler left out {skipped} steps, as scalers do." if skipped else ""
        return ITEM.no_problem(
            f"Loss and gradients were finite at all {len(known)} steps.{guarded}",
            limits="A single NaN or infinite loss or gradient norm that reached the weights would have been seen. "
            "Infinite values "
            "inside of the model that never reach the loss (masks) are not looked for.",
            confidence=0.97,
        )
    return ITEM.problem(
        _summary(run, found),
        confidence=_confidence(run, found),
        evidence=_evidence(run, found),
        location=found.location,
        fix=_fix(run, found),
        limits="Any loss or gradient norm that is not finite is seen, whatever its step; the operation is the likeliest one.",
    )


def _finite_from_outside(run: Run, steps: int) -> Finding:
    """Compiled steps show their loss and what became of the weights."""
    spoilt = [stat for stat in run.stats("parameter") if stat.nan or stat.inf]
    if spoilt:
        parameter = run.parameters[spoilt[0].subject]
        return ITEM.problem(
            f"{parameter.name} was NaN or infinite at step {spoilt[0].step}, while the loss was finite at all {steps} steps.",
            confidence=0.9,
            evidence=[Evidence(f"{len(spoilt)} looks at weights found NaN or infinite values.", {}, spoilt[0].step)],
            fix="Record the script in PyNative mode to see where it comes from: trueline run --pynative SCRIPT",
            limits="Weights are looked at on sampled steps.",
        )
    return ITEM.no_problem(
        f"The loss was finite at all {steps} steps, and so were the weights whenever they were looked at.",
        limits="A single NaN or infinite loss, or one in the weights that stayed, would have been seen. Gradients of compiled "
        "steps that were left out, or that changed no weight, were not.",
        confidence=0.85,
    )


def _summary(run: Run, found: NonFinite) -> str:
    where = f" in {found.module}" if found.module else ""
    if _was_fed(run, found):
        return f"What went into the model at step {found.step} was not finite already: the loss became NaN or infinite there."
    if found.phase == "update" and "gradients" in run.unseen:
        return (
            f"The compiled step {found.step} made weights{where} NaN or infinite; its loss was finite, its gradients were not "
            "seen. Where it comes from is told by: trueline run --pynative SCRIPT"
        )
    if found.phase == "update":
        return f"The update of step {found.step} made weights{where} NaN or infinite; loss and gradients had been finite."
    if found.phase == "backward":
        if found.operation:
            return (
                f"The gradients became NaN or infinite at step {found.step} while the loss was finite: "
                f"the derivative of `{found.operation}` after {found.module or 'the model'} has no finite value."
            )
        return f"The gradients{where} became NaN or infinite at step {found.step} while the loss was finite."
    if found.operation and _stayed_inside(run, found):
        return (
            f"`{found.operation}`{where} overflowed at step {found.step}: float16 ends at 65504. The loss was still finite, the "
            "gradients were not."
        )
    if found.operation:
        return (
            f"The loss became NaN or infinite at step {found.step}: `{found.operation}`{where} is not kept from {_danger(found)}."
        )
    return f"The loss became NaN or infinite at step {found.step}, first seen{where or ' in the loss'}."


def _danger(found: NonFinite) -> str:
    operation = found.operation or ""
    if operation.startswith("log"):
        return "an argument of zero"
    if operation in ("div", "truediv", "true_divide", "divide", "reciprocal"):
        return "a denominator of zero"
    if operation in GROWING or operation in ("expm1", "cosh", "sinh"):
        return "overflowing"
    return "values where it is not defined"


def _stayed_inside(run: Run, found: NonFinite) -> bool:
    """Whether an infinite value of the forward pass did not reach the loss."""
    loss = next((step.loss for step in run.steps if step.id == found.step), None)
    return found.phase == "forward" and loss is not None and math.isfinite(loss)


def _was_fed(run: Run, found: NonFinite) -> bool:
    return found.phase == "forward" and found.operation is None and fed_nonfinite(run, found.step) is not None


def _confidence(run: Run, found: NonFinite) -> float:
    if found.operation is None or _diverged_before(run, found.step):
        return 0.6
    return 0.85 if len({op.location for op in suspects(run)}) <= 1 else 0.7


def _losses_before(run: Run, step: int) -> list[float]:
    return [abs(each.loss) for each in run.steps if each.id < step and each.loss is not None and math.isfinite(each.loss)]


def _diverged_before(run: Run, step: int) -> bool:
    before = _losses_before(run, step)
    return len(before) > 1 and before[-1] > _DIVERGED * max(before[0], 1e-12)


def _evidence(run: Run, found: NonFinite) -> list[Evidence]:
    place = f" in {found.module}" if found.module else ""
    seen = "update" if found.phase == "update" else f"{found.phase} pass"
    evidence = [
        Evidence(
            f"Step {found.step}: first seen in the {seen}{place}.", {"phase": found.phase}, found.step, location=found.location
        )
    ]
    others = sorted({str(op.location) for op in suspects(run) if op.location is not None and op.location.line != _line(found)})
    if found.operation and others:
        evidence.append(Evidence(f"Other operations that could have: {', '.join(others[:5])}.", {"candidates": others[:20]}))
    before = _losses_before(run, found.step)
    bad = sum(not step.finite for step in run.steps)
    if before:
        evidence.append(
            Evidence(
                f"The loss was {before[0]:.4g} at first and {before[-1]:.4g} just before; "
                f"{bad} of {len(run.steps)} steps were not finite.",
                {"first": before[0], "last": before[-1], "not_finite": bad, "steps": len(run.steps)},
            )
        )
    evidence.extend(_float16_evidence(run, found.step))
    return evidence


def _float16_evidence(run: Run, step: int) -> list[Evidence]:
    """Outputs in float16 that came near to its largest number at the last sampled steps."""
    near = [
        stat
        for stat in run.stats("output")
        if stat.dtype == "float16" and stat.step <= step and max(abs(stat.min or 0), abs(stat.max or 0)) > _FLOAT16_LARGEST / 8
    ]
    if not near:
        return []
    last = near[-1]
    module = run.modules[last.subject]
    largest = max(abs(last.min or 0), abs(last.max or 0))
    return [
        Evidence(
            f"Step {last.step}: the output of {module.name} in float16 reached {largest:.4g}, of at most 65504.",
            {"module": module.name, "largest": largest},
            last.step,
            module.called,
        )
    ]


def _line(found: NonFinite) -> int | None:
    return found.location.line if found.location else None


def _fix(run: Run, found: NonFinite) -> str:
    if _was_fed(run, found):
        return "Look at the batch of this step: its values are not finite. Remove, fill or mask them before they enter the model."
    if found.operation in _STABLE_FORM:
        return f"In `{found.operation}`{f' at {found.location}' if found.location else ''}: {_STABLE_FORM[found.operation]}."
    if _diverged_before(run, found.step) or found.phase == "update":
        return "The values grew beyond all bounds first: lower the learning rate, or clip the gradients, before anything else."
    return "Compute this part in float32, and keep logarithms, roots and denominators away from zero with a small constant."
