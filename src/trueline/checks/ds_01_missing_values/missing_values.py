"""NaN and infinite values in batches, and whether they did harm."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from trueline.model import Batch, FieldStat, Location, RootCall
from trueline.store import Run
from trueline.views.inputs import ModelInputs

# Of the batches without gaps, this share must have led to a backward pass before their absence is held against the others.
_MOST = 0.9


class Gaps(msgspec.Struct, frozen=True):
    """Missing values of batches. `fields`: by name, how many values and in how many samples. `harm` says what they did."""

    fields: dict[str, tuple[int, int]]
    batches: int
    all_batches: int
    samples: int
    first_step: int
    location: Location | None
    harm: str | None
    confidence: float


def harm_of_gaps(run: Run, inputs: ModelInputs) -> Gaps | None:
    """The missing values of the source whose batches did harm first, else of all sources; None without any."""
    with_gaps = [batch for batch in run.batches if batch.nonfinite]
    if not with_gaps:
        return None
    calls: dict[int, list[RootCall]] = {}
    for call in inputs.roles.calls:
        if call.batch is not None:
            calls.setdefault(call.batch, []).append(call)
    for judge in (_broken_step, _broken_output, _thrown_away, _broken_evaluation):
        judged = judge(run, inputs, with_gaps, calls)
        if judged is not None:
            call, harm, confidence = judged
            loader = inputs.roles.loader_of(call)
            same = [batch for batch in with_gaps if batch.loader == loader]
            return _gaps(run, same, inputs.source_line(call), harm, confidence, call.step)
    first = next((one for batch in with_gaps for one in calls.get(batch.seq, [])), None)
    return _gaps(run, with_gaps, None if first is None else inputs.source_line(first), None, 0.0, with_gaps[0].step)


def _gaps(run: Run, batches: list[Batch], location: Location | None, harm: str | None, confidence: float, step: int) -> Gaps:
    sources = {batch.loader for batch in batches}
    known = [batch for batch in run.batches if batch.loader in sources]
    # Later epochs bring the same gaps again: count those of the first look at every sample.
    fields: dict[str, tuple[int, int]] = {}
    seen: set[tuple[int, ...]] = set()
    for batch in batches:
        if batch.fingerprints in seen or (batch.epoch or 0) > 0:
            continue
        seen.add(batch.fingerprints)
        for entry in batch.nonfinite:
            count, samples = fields.get(entry["field"], (0, 0))
            fields[entry["field"]] = (count + entry["nan"] + entry["inf"], samples + entry["samples"])
    if not fields:
        fields = {entry["field"]: (entry["nan"] + entry["inf"], entry["samples"]) for entry in batches[0].nonfinite}
    samples = sum(batch.size for batch in known)
    return Gaps(fields, len(batches), len(known), samples, step, location, harm, confidence)


def _is_filled_in(batch: Batch, stats: list[FieldStat]) -> bool:
    """Whether all fields with gaps entered the model without them."""
    if not stats or any(stat.nan or stat.inf for stat in stats):
        return False
    shapes = {tuple(field["shape"][1:]) for field in batch.fields for entry in batch.nonfinite if field["name"] == entry["field"]}
    return shapes <= {stat.shape[1:] for stat in stats}


def _may_be_made_by_model(inputs: ModelInputs, call: RootCall) -> bool:
    """Whether a hand-made batch may hold what another model gave: only the first call of a step is surely fed with data."""
    if inputs.roles.loader_of(call) is not None:
        return False
    first = next((one for one in inputs.roles.calls if one.step == call.step), None)
    return call.fed_by is not None or first is None or first.seq != call.seq


Judged = tuple[RootCall, str, float]
Calls = dict[int, list[RootCall]]


def _broken_step(run: Run, inputs: ModelInputs, with_gaps: list[Batch], calls: Calls) -> Judged | None:
    """The first step that is not finite was fed with a batch that has gaps."""
    broken = next((step for step in run.steps if not step.finite), None)
    if broken is None:
        return None
    for batch in with_gaps:
        for call in calls.get(batch.seq, []):
            if call.step != broken.id or not call.grad or _may_be_made_by_model(inputs, call):
                continue
            if _is_filled_in(batch, inputs.stats.get(call.seq, [])):
                continue
            return call, f"with them, the loss or the gradients of step {broken.id} are the first that are not finite", 0.97
    return None


def _broken_output(run: Run, inputs: ModelInputs, with_gaps: list[Batch], calls: Calls) -> Judged | None:
    """The model's output has missing values where its input has, in a step that was looked at."""
    roots = {module.id for module in run.roots}
    outputs = {(stat.step, stat.subject) for stat in run.stats("output") if stat.nan and stat.subject in roots}
    for batch in with_gaps:
        for call in calls.get(batch.seq, []):
            entered = any(stat.nan for stat in inputs.stats.get(call.seq, []))
            if entered and (call.step, call.module) in outputs and not _may_be_made_by_model(inputs, call):
                healthy_before = all(step.finite for step in run.steps if step.id < call.step)
                if healthy_before:
                    return call, f"with them, the model's output at step {call.step} is not a number", 0.95
    return None


def _thrown_away(_run: Run, inputs: ModelInputs, with_gaps: list[Batch], _calls: Calls) -> Judged | None:
    """No backward pass follows batches with gaps, although one follows the others: the script skips them."""
    gaps = {batch.seq for batch in with_gaps}
    training = [call for call in inputs.roles.calls if call.grad and call.seq not in inputs.evaluating and call.batch is not None]
    followed: dict[bool, list[bool]] = {True: [], False: []}
    for call, after in pairwise(training):
        followed[call.batch in gaps].append(inputs.roles.order.any_between("backward", call.seq, after.seq))
    missing, others = followed[True], followed[False]
    if len(missing) < 2 or any(missing) or not others or sum(others) < _MOST * len(others):
        return None
    first = next(call for call in training if call.batch in gaps)
    if inputs.roles.loader_of(first) is None:
        return None
    return first, f"no backward pass follows any of the {len(missing)} calls that were fed with them", 0.75


def _broken_evaluation(run: Run, inputs: ModelInputs, with_gaps: list[Batch], calls: Calls) -> Judged | None:
    """The loss of an evaluation is not a number on batches with gaps, and is one on the others, of a model that is sound."""
    if not all(step.finite for step in run.steps):
        return None
    gaps = {batch.seq for batch in with_gaps}
    losses = [event for event in run.events_of("eval_loss") if event.subject is not None]
    broken = [event for event in losses if event.value is None or event.value - event.value != 0]
    if not broken or any(event.subject not in gaps for event in broken):
        return None
    call = next((one for event in broken for one in calls.get(event.subject or 0, []) if not one.grad), None)
    if call is None or inputs.roles.loader_of(call) is None:
        return None
    return call, f"the loss of {len(broken)} evaluation batches is not a number because of them", 0.9
