"""Whether aligned runs are what they are taken for: the reference's repetition was fed with the same batches, and so was mine."""

from __future__ import annotations

import numpy as np

from trueline.compare.runs.kept import Kept
from trueline.compare.runs.measure import distance
from trueline.model import RootCall
from trueline.recorder.alignment import same_samples
from trueline.store import Run

_FIRST_STEPS = (0, 1)
# What one unit in the last place does to inputs is less, what other batches do is more.
_SAME = 1e-5
_SAME_LOSS = 1e-3
# How many times further than what a model gives its loss may move.
_TIMES_OUTPUT = 100.0


def repeats(reference: Run, perturbed: Run) -> bool:
    """Whether a perturbed run took the same batches as the reference, and had the same targets: else it says nothing of noise."""
    model = trained_model(reference)
    if model is None:
        return True
    kept, moved = Kept(reference), Kept(perturbed)
    if not all(_same_inputs(kept, moved, model, model, step) for step in _FIRST_STEPS):
        return False
    before, after = (kept_by.get(0, "output", model) for kept_by in (kept, moved))
    first, second = (run.steps[0].loss if run.steps else None for run in (reference, perturbed))
    if before is None or after is None or first is None or second is None or not np.isfinite([first, second]).all():
        return True
    allowed = max(_SAME_LOSS, _TIMES_OUTPUT * distance(after, before).relative)
    return bool(abs(first - second) <= allowed * abs(first))


def why_not_fair(mine: Run, reference: Run) -> str | None:
    """Why mine cannot be compared: its model was given other samples than the reference's; None where it can."""
    own, expected = trained_model(mine), trained_model(reference)
    if own is None or expected is None or _same_inputs(Kept(reference), Kept(mine), expected, own, 0):
        return None
    unfit = mine.alignment.get("unfit")
    why = f" ({unfit})" if unfit else ""
    return (
        f"The reference's batches could not be put in the place of mine{why}: the models are given other samples, and what they "
        "give cannot be compared."
    )


def trained_model(run: Run) -> str | None:
    """The path of the module that is called first to be trained."""

    def trains(call: RootCall) -> bool:
        return call.grad and not call.loss and call.module in run.modules

    call = next((call for call in run.root_calls if trains(call)), None)
    if call is None:
        return None
    module = run.modules[call.module]
    return f"{run.modules[module.root].name}.{module.path}".rstrip(".")


def _same_inputs(kept: Kept, other: Kept, model: str, other_model: str, step: int) -> bool:
    """Whether two models were given the same, as far as what they were given can be set side by side."""
    for position in kept.positions(step, "input", model):
        values, found = kept.get(step, "input", model, position), other.get(step, "input", other_model, position)
        if values is None or found is None or found.size != values.size or found.dtype.kind != values.dtype.kind:
            continue
        if distance(found, values).relative > _SAME and not (found.shape != values.shape and same_samples(values, found)):
            return False
    return True
