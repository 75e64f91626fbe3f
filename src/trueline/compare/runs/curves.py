"""The losses of two aligned runs, step by step, against the band that noise alone makes."""

from __future__ import annotations

import math

import msgspec

from trueline.store import Run

# How many times the band of the perturbed repetition the losses may be apart, and the least that they may.
_TIMES_BAND = 12.0
_LEAST = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 2e-2}
# The curves have parted where they are apart at so many of the steps that follow.
_LASTING = 3
# By how much of the loss, and by how many times what they were apart before, curves part that part at once.
_NOTICEABLE = 1e-3
_JUMP = 20.0


class Curves(msgspec.Struct, frozen=True):
    """`first` and `second`: whether the losses of these steps differ, None where they are not known. `parted`: the step
    from which on the curves are apart. `sudden`: they part within a few steps, and not as rounding does, which grows."""

    first: bool | None
    second: bool | None
    parted: int | None
    losses: list[tuple[int, float | None, float | None]]
    sudden: bool = False


def compare_losses(mine: Run, reference: Run, perturbed: Run | None, *, half: str | None) -> Curves:
    """Set the losses of all steps that both runs have side by side."""
    expected = {step.id: step.loss for step in reference.steps}
    shared = _divided(mine, reference)
    own = {step.id: None if step.loss is None else step.loss / shared for step in mine.steps}
    moved = {step.id: step.loss for step in perturbed.steps} if perturbed is not None else {}
    off: list[bool | None] = []
    band = 0.0
    losses = []
    for number in sorted(own.keys() & expected.keys()):
        a, b = own[number], expected[number]
        losses.append((number, a, b))
        if a is None or b is None:
            off.append(None)
            continue
        noise = moved.get(number)
        if noise is not None and math.isfinite(noise) and math.isfinite(b):
            # Noise grows as the training goes on; a step at which it happens to be small says nothing.
            band = max(band, abs(noise - b))
        allowed = max(_TIMES_BAND * band, _LEAST[half or "float32"] * abs(b))
        off.append(not _same(a, b, allowed))
    parted = _parted(off)
    sudden = parted is not None and _is_sudden(losses, parted)
    return Curves(off[0] if off else None, off[1] if len(off) > 1 else None, parted, losses, sudden)


def _divided(mine: Run, reference: Run) -> float:
    """What my losses have to be divided by to be the reference's, where one side divides each of the batches whose gradients it
    adds up, and the other what comes of it."""
    if not mine.steps or not reference.steps or not mine.steps[0].loss or not reference.steps[0].loss:
        return 1.0
    ratio = mine.steps[0].loss / reference.steps[0].loss
    counts = {run.steps[0].backwards for run in (mine, reference)}
    for count in counts - {0, 1}:
        for factor in (float(count), 1.0 / count):
            if math.isclose(ratio, factor, rel_tol=_LEAST["float32"]):
                return factor
    return 1.0


def _is_sudden(losses: list[tuple[int, float | None, float | None]], parted: int) -> bool:
    """A unit of a model may switch on one side only, and what follows from that grows: that is no other training."""
    apart = [0.0 if a is None or b is None else abs(a - b) / max(abs(b), 1e-12) for _, a, b in losses]
    now = max((value for value in apart[parted : parted + _LASTING] if math.isfinite(value)), default=math.inf)
    return now >= max(_NOTICEABLE, _JUMP * max(apart[:parted], default=0.0))


def _same(mine: float, reference: float, allowed: float) -> bool:
    if not (math.isfinite(mine) and math.isfinite(reference)):
        return str(mine) == str(reference)
    return abs(mine - reference) <= allowed


def _parted(off: list[bool | None]) -> int | None:
    for number in range(len(off)):
        following = off[number : number + _LASTING]
        if off[number] and all(following):
            return number
    return None
