"""Gradients clipped before they were unscaled

## What it checks
With a gradient scaler the loss is multiplied by a large factor before the backward pass, so the gradients are too large
by that factor until they are unscaled. This item looks at whether gradients were clipped while they were still scaled.

## Why it hurts accuracy
A limit of 1.0 on gradients scaled by 65536 is a limit of 0.000015 on the true gradients. Every update is cut down to
almost nothing, and by a factor that changes whenever the scaler changes its scale: the run looks like one with a far too
small and drifting learning rate.

## Method
The order of the events `scale`, `backward`, `clip`, `unscale`, `scaler_step` and `optimizer_step` is followed through the
run. A clip between the backward pass of a scaled loss and the first unscaling after it is a clip of scaled gradients
(`scaler.step` unscales by itself when nobody did before). Without a scaler object, scaling by hand is recognised when the
gradients were divided by the same factor of at least 2 between clipping and the optimizer step at every step, and the
loss that the backward pass started from is larger than the computed loss by the same factor.
A clip that the script wrote itself shows in the gradient norms at the optimizer: at nine of ten steps (20 or more) the same to a
thousandth, below 0.02, and a number with one digit when multiplied by the scale, with nothing unscaled before.
Nothing is reported when the scale is exactly 1, when the limit follows the scale (`max_norm * scaler.get_scale()`), or
when no clip changed a gradient.

## Evidence
The step, the line of the clip, the scale, the limit, the norm that was clipped and the true norm (norm divided by
scale), and how many clips cut gradients that were in truth below the limit.

## Limits
With several optimizers, a clip is only judged when none of them was unscaled since the backward pass. Scaling by hand
is seen only when the clip goes through the framework's clipping function; a clip of the script's own only where it is active at
nearly every step.

## What to do
Call `scaler.unscale_(optimizer)` after the last backward pass and before clipping; in MindSpore clip what
`scaler.unscale(gradients)` returns.
"""

from __future__ import annotations

import msgspec
import numpy as np

from trueline.checks.base import Item
from trueline.model import Event, Evidence, Finding
from trueline.store import Run
from trueline.views.loss_factor import loss_factor
from trueline.views.words import either

item = Item(__name__, __doc__)
NEEDS = ("order",)

CONSEQUENCES = ("hp.01", "mp.02")
RANK = 30

_EVENTS = ("scale", "backward", "clip", "unscale", "scaler_step", "optimizer_step")
# A limit above this is no limit that anybody sets on unscaled gradients: it was multiplied by the scale on purpose.
_SCALED_LIMIT = 1000.0
_SMALLEST_FACTOR = 2.0
_LARGE_FACTOR = 8.0
_SAME_FACTOR = 0.01
# Own clips: so many steps with a norm that is equal to a thousandth; norms below this are no limit that anybody sets.
_FEWEST_EQUAL = 20
_EQUAL_NORMS = 1e-3
_MOSTLY = 0.9
_NO_LIMIT = 0.02


class _Clip(msgspec.Struct, frozen=True):
    """One clip of gradients that were scaled by `scale` at that moment (None: it lives on a device and was not read);
    `backward` is the pass that made them."""

    event: Event
    scale: float | None
    backward: Event

    @property
    def limit(self) -> float | None:
        limit = self.event.detail.get("limit")
        return None if limit is None else float(limit)

    @property
    def cut(self) -> bool:
        """Whether it changed the gradients, as far as is known: clipping by value does not tell a norm."""
        if self.event.value is None or self.limit is None or self.event.detail.get("kind") == "value":
            return True
        return self.event.value > self.limit

    @property
    def wrongly_cut(self) -> bool:
        """Whether it cut gradients whose true norm lies below the limit."""
        if self.event.value is None or self.limit is None or not self.scale or self.event.detail.get("kind") == "value":
            return False
        return self.cut and self.event.value / self.scale <= self.limit


def conclude(run: Run) -> Finding:
    clips = run.events_of("clip")
    own = _clipped_by_hand(run)
    if own is not None:
        return own
    if not clips:
        return item.not_applicable("No gradient clipping was seen in this run.")
    if not run.events_of("scale"):
        return _scaled_by_hand(run, clips)
    scaled = _clips_of_scaled_gradients(run)
    if not scaled:
        return item.no_problem(
            f"All {len(clips)} clips worked on gradients that were unscaled before.",
            limits="A single clip between the backward pass of a scaled loss and its unscaling would have been seen.",
            confidence=0.95,
        )
    return _judge(run, scaled, len(clips))


def _clipped_by_hand(run: Run) -> Finding | None:
    """A clip that the script wrote itself: every step has one and the same gradient norm, far below any limit that people set,
    and times the loss scale it is a limit that they do set."""
    scale: float | None = None
    norms: list[tuple[Event, float, float]] = []
    norm_of = {step.id: step.grad_norm for step in run.steps}
    unscaled = False
    for event in run.events_of("scale", "unscale", "clip", "scaler_step"):
        if event.kind == "scale":
            scale, unscaled = event.value, False
        elif event.kind in ("unscale", "clip"):
            unscaled = True
        elif scale and not unscaled and (norm := norm_of.get(event.step)):
            norms.append((event, norm, norm * scale))
    if len(norms) < _FEWEST_EQUAL:
        return None
    limits = np.array([limit for _, _, limit in norms])
    limit = float(np.median(limits))
    equal = np.abs(limits / limit - 1) <= _EQUAL_NORMS
    round_to = float(f"{limit:.1g}")
    if equal.mean() < _MOSTLY or abs(limit / round_to - 1) > _EQUAL_NORMS or norms[0][1] > _NO_LIMIT:
        return None
    event, norm, _ = norms[0]
    backwards = [backward for backward in run.events_of("backward") if backward.seq < event.seq]
    return item.problem(
        f"Gradients are clipped to {round_to:g} while they are still multiplied by the loss scale: at {equal.mean():.0%} of the "
        f"steps their norm is {norm:.3g}, which is {round_to:g} divided by the scale.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"{int(equal.sum())} of {len(norms)} steps have a gradient norm that is {round_to:g} when multiplied by the "
                "scale, to a thousandth; nothing was unscaled before.",
                {"limit": round_to, "norm": norm, "steps": len(norms)},
                event.step,
                event.location,
            )
        ],
        location=backwards[-1].location if backwards else event.location,
        fix=either(
            run,
            pytorch="Call `scaler.unscale_(optimizer)` between the backward pass and your own clipping.",
            mindspore="Clip what `scaler.unscale(gradients)` returns, not the gradients before it.",
        ),
        limits="A clip that is active at nine of ten steps would have been seen.",
    )


def _clips_of_scaled_gradients(run: Run) -> list[_Clip]:
    found = []
    waiting: list[float | None] = []  # scales of losses that were scaled and not yet propagated back
    scale: float | None = None
    backward: Event | None = None
    unscaled = True
    for event in run.events_of(*_EVENTS):
        if event.kind == "scale":
            waiting.append(event.value)
        elif event.kind == "backward":
            unscaled = not waiting
            scale, backward = (waiting.pop(), event) if waiting else (None, None)
        elif event.kind in ("unscale", "scaler_step"):
            unscaled = True
        elif event.kind == "optimizer_step":
            unscaled = True
            waiting.clear()
        elif backward is not None and not unscaled:
            found.append(_Clip(event, scale, backward))
    return found


def _judge(run: Run, scaled: list[_Clip], clips: int) -> Finding:
    if all(clip.scale == 1.0 for clip in scaled):
        return item.no_problem(
            f"{len(scaled)} of {clips} clips came before unscaling, with a scale of exactly 1: that changes nothing.",
            limits="The order is wrong all the same, and will hurt as soon as the scale is another one.",
        )
    scaled = [clip for clip in scaled if clip.scale != 1.0]
    if _limit_follows_scale(scaled):
        return item.no_problem(
            f"Gradients are clipped while scaled, and the limit is scaled too ({scaled[0].limit:g}).",
            limits="A limit that does not follow the scale would have been seen.",
        )
    cut = [clip for clip in scaled if clip.cut]
    if not cut:
        return item.no_problem(
            f"{len(scaled)} of {clips} clips came before unscaling, but even the scaled norms stayed below the limit: "
            "no gradient was changed.",
            limits="The order is wrong all the same; in this run it had no effect.",
            confidence=0.7,
        )
    first = cut[0]
    wrongly = sum(clip.wrongly_cut for clip in cut)
    evidence = [_evidence_of(first)]
    if wrongly:
        evidence.append(
            Evidence(
                f"{wrongly} of {len(cut)} clips cut gradients whose true norm was below the limit.",
                {"wrongly_cut": wrongly, "clips_before_unscale": len(cut), "clips": clips},
            )
        )
    where = f" at line {first.backward.location.line}" if first.backward.location else ""
    scale = "of unknown size" if first.scale is None else f"{first.scale:g}"
    return item.problem(
        f"Gradients are clipped while they are still multiplied by the loss scale ({scale}): {len(cut)} of {clips} clips.",
        confidence=0.98,
        evidence=evidence,
        location=first.event.location,
        fix=either(
            run,
            pytorch=f"Add `scaler.unscale_(optimizer)` between the backward pass{where} and the clipping; "
            "`scaler.step(optimizer)` then does not unscale a second time.",
            mindspore=f"Unscale the gradients between the backward pass{where} and the clipping: clip what "
            "`scaler.unscale(gradients)` returns.",
        ),
        limits="A single clip before unscaling would have been seen.",
    )


def _limit_follows_scale(scaled: list[_Clip]) -> bool:
    limits = [clip.limit for clip in scaled]
    known = [limit for limit in limits if limit is not None]
    if len(known) < len(limits):
        return False
    if min(known) >= _SCALED_LIMIT:
        return True
    ratios = [limit / clip.scale for limit, clip in zip(known, scaled, strict=True) if clip.scale]
    return len(set(known)) > 1 and len(ratios) == len(known) and max(ratios) - min(ratios) <= _SAME_FACTOR * max(ratios)


def _evidence_of(clip: _Clip) -> Evidence:
    norm, limit, scale = clip.event.value, clip.limit, clip.scale
    values = {"scale": scale, "limit": limit, "norm": norm, "true_norm": norm / scale if norm is not None and scale else None}
    text = f"Step {clip.event.step}: clip between the backward pass and unscaling"
    if scale is not None:
        text += f", at a scale of {scale:g}"
    if limit is not None and scale:
        text += f"; the limit {limit:g} is {limit / scale:.2g} for the true gradients"
    if norm is not None and scale:
        text += f"; the norm was {norm:.4g}, in truth {norm / scale:.4g}"
    return Evidence(f"{text}.", values, clip.event.step, clip.event.location)


def _scaled_by_hand(run: Run, clips: list[Event]) -> Finding:
    """Without a scaler: were gradients divided by a constant after clipping, the one that the loss was multiplied by?"""
    divided = []
    for event in run.events_of("optimizer_step"):
        clipped_norm, norm = event.detail.get("clipped_norm"), event.detail.get("norm")
        if clipped_norm and norm:
            divided.append((event, float(clipped_norm) / float(norm)))
    factors = [factor for _, factor in divided]
    steps = len({event.step for event in run.events_of("optimizer_step")})
    constant = len(factors) >= 2 and min(factors) >= _SMALLEST_FACTOR and max(factors) <= min(factors) * (1 + _SAME_FACTOR)
    if not constant or len(factors) < 0.9 * steps:
        return item.not_applicable("No loss scaling was seen in this run: nothing has to be unscaled before clipping.")
    factor = sorted(factors)[len(factors) // 2]
    of_loss = loss_factor(run)
    if not _explained(run, factor, of_loss):
        return item.not_checked(
            f"gradients were divided by {factor:.4g} after clipping at every step, but the loss was not seen to be "
            "multiplied by it: it may be an average over accumulated batches."
        )
    first_step = divided[0][0].step
    clip = next((event for event in reversed(clips) if event.step == first_step), clips[0])
    return item.problem(
        f"The loss is multiplied by {factor:g}, and the gradients are divided by it only after they were clipped.",
        confidence=0.95 if of_loss is not None else 0.8,
        evidence=[
            Evidence(
                f"At all {len(factors)} steps the gradient norm at the optimizer step is {factor:.4g} times smaller than "
                "after clipping"
                + (f"; the loss that was propagated back is {of_loss:.4g} times the computed one." if of_loss else "."),
                {"factor": factor, "loss_factor": of_loss, "limit": clip.detail.get("limit"), "norm": clip.value},
                first_step,
                clip.location,
            )
        ],
        location=clip.location,
        fix="Divide the gradients by the loss scale before the clipping, not after it.",
        limits="A division by 2 or more after clipping, at all steps, would have been seen.",
    )


def _explained(run: Run, factor: float, loss_factor: float | None) -> bool:
    """Whether the division undoes a scaling of the loss. Where the loss is no function of the framework its size before the
    scaling is not known; then a division at steps with one backward pass, which average nothing, must do."""
    if loss_factor is None:
        return all(step.backwards == 1 for step in run.steps)
    # Further terms of the loss blur the factor; a large one is recognised all the same.
    tolerance = _SAME_FACTOR if factor < _LARGE_FACTOR else 0.5
    return abs(loss_factor / factor - 1) <= tolerance
