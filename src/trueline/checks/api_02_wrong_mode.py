"""Training or evaluation in the wrong mode

## What it checks
Dropout and BatchNorm behave differently in training and in evaluation mode. This item looks at the mode of the model at
every call: evaluations made in training mode, training steps made in evaluation mode, and dropout calls that do not follow
the mode of their model.

## Why it hurts accuracy
In training mode an evaluation drops random units and normalises with the statistics of its own batch, so its numbers are
too low and depend on the batch; worse, BatchNorm's running statistics take in the evaluation data. In evaluation mode a
training step has no dropout and does not update the running statistics: the model overfits, or is evaluated with
statistics of the first epoch.

## Method
A call counts as *training* when it is the last one with gradients before the backward pass of an optimizer step that holds
its parameters. A call counts as *evaluation* when it follows the first training step, comes without a backward pass, does
not feed a call with gradients, does not look at the samples of the training step beside it, and is not part of every step
(unless the same samples come again every time). Then the recorded modes are compared:

- evaluation with dropout active or BatchNorm on batch statistics;
- training in evaluation mode with all dropout and BatchNorm modules inactive; the `eval()` that was not undone is named;
- a functional dropout call that is active while its model is in evaluation mode;
- dropout modules switched on in a model that is in evaluation mode: this is MC dropout, and is reported under that name.

BatchNorm alone in evaluation mode inside of a model in training mode is frozen BatchNorm, which people do on purpose: it is
said, not reported. A fine-tuning run that never leaves evaluation mode is not judged.

## Evidence
How many calls were in the wrong mode, how many dropout and BatchNorm modules were concerned, and the lines of the calls
and of the mode switches.

## Limits
One evaluation call in the wrong mode is enough. An evaluation on the very samples of the training step beside it, or of
a copy of the model that no optimizer trains, is not judged.

## What to do
Call `model.eval()` before evaluating and `model.train()` before going on with training; give `F.dropout` its
`training=self.training`. In MindSpore: `model.set_train(False)`, `model.set_train(True)` and `ops.dropout`.
"""

from __future__ import annotations

from bisect import bisect_right

from trueline.checks.base import Item
from trueline.checks.parts import Part, worst_of
from trueline.model import Event, Evidence, Finding, RootCall
from trueline.store import Run
from trueline.views.calls import CallRoles
from trueline.views.words import either, words_of

item = Item(__name__, __doc__)

CONSEQUENCES = ("hp.02", "dp.02")
RANK = 35
GAINS = ("dropout",)

_FEWEST_STEPS = 2
_LOADED_SHARE = 0.5


def conclude(run: Run) -> Finding:
    roles = CallRoles(run)
    if not roles.calls:
        return item.not_checked("no call of a model was recorded.")
    functional = run.events_of("functional_dropout")
    sensitive = {roles.family(call) for call in roles.calls if call.dropout or call.batch_norm}
    if not sensitive and not functional and "dropout" in run.unseen:
        return item.not_checked(
            "no dropout or BatchNorm layer was seen, and functional dropout inside of compiled graphs cannot be. "
            "Record the script in PyNative mode with: trueline run --pynative SCRIPT"
        )
    if not sensitive and not functional:
        return item.not_applicable("No model of this run has dropout or BatchNorm: the mode changes nothing.")
    found = [("dropout", _dropout_that_ignores_the_mode(roles, functional))]
    for family in sorted(sensitive):
        found += [("training", _training_in_eval_mode(roles, family))]
        found += [("evaluation", _evaluation_in_training_mode(roles, family))]
    parts = [Part(name, finding) for name, finding in found if finding is not None]
    return worst_of(parts) if parts else _nothing_found(roles, sensitive)


def _nothing_found(roles: CallRoles, sensitive: set[int]) -> Finding:
    trained = [call for family in sensitive for call in roles.training.get(family, [])]
    if not trained:
        if any(call.grad for call in roles.calls):
            return item.not_checked("no training step of a model with dropout or BatchNorm was recorded.")
        return item.not_applicable("The run trains no model with dropout or BatchNorm.")
    evaluated = sum(len(stretch.calls) for family in sensitive for stretch in roles.evaluations(family))
    frozen = max((one.call.batch_norm - one.call.batch_norm_batch for one in trained if one.call.training), default=0)
    notes = f" {frozen} BatchNorm modules are frozen (in evaluation mode inside of a training model)." if frozen else ""
    limits = "One evaluation call in training mode, or two training steps in evaluation mode, would have been seen."
    if not evaluated:
        limits = "No evaluation was seen in this run: only the mode of the training steps could be judged."
    if "dropout" in roles.run.unseen:
        limits += " Functional dropout inside of compiled graphs was not seen."
    return item.no_problem(
        f"All {len(trained)} training calls and {evaluated} evaluation calls were made in the right mode.{notes}",
        limits=limits,
        confidence=0.9 if evaluated else 0.7,
    )


def _name(roles: CallRoles, call: RootCall) -> str:
    return roles.run.modules[roles.run.modules[call.module].root].name


def _active_parts(calls: list[RootCall]) -> str:
    dropout, batch_norm = max(call.dropout_active for call in calls), max(call.batch_norm_batch for call in calls)
    parts = [f"{dropout} dropout modules active"] if dropout else []
    parts += [f"{batch_norm} BatchNorm modules on batch statistics"] if batch_norm else []
    return " and ".join(parts)


def _evaluation_in_training_mode(roles: CallRoles, family: int) -> Finding | None:
    stretches = roles.evaluations(family)
    calls = [call for stretch in stretches for call in stretch.calls]
    wrong = [call for call in calls if call.dropout_active or call.batch_norm_batch]
    if len(wrong) < len(calls):
        # A model that is evaluated properly elsewhere passes over the training data in training mode to renew its statistics.
        wrong = [call for call in wrong if roles.loader_of(call) not in roles.training_loaders.get(family, set()) - {None}]
    if not wrong:
        return None
    if all(not call.training and call.dropout_active and not call.batch_norm_batch for call in wrong):
        return _mc_dropout(roles, wrong, len(calls))
    first = next(call for call in wrong if call.training or call.batch_norm_batch)
    name, switches, words = _name(roles, first), _switches(roles, family), words_of(roles.run)
    evidence = [
        Evidence(
            f"{len(wrong)} of {len(calls)} evaluation calls were made with {_active_parts(wrong)}.",
            {"wrong": len(wrong), "evaluations": len(calls), "dropout_active": max(call.dropout_active for call in wrong),
             "batch_norm_batch": max(call.batch_norm_batch for call in wrong)},
            first.step,
            first.location,
        ),
        Evidence(
            f"`{words.evaluation_mode}` was called {sum(event.value == 0 for event in switches)} times on this model in the "
            "whole run.",
            {"eval_calls": sum(event.value == 0 for event in switches)},
        ),
    ]  # fmt: skip
    if any(call.grad for call in wrong):
        evidence.append(Evidence("Gradients were enabled in these evaluation calls; nothing was propagated back from them."))
    return item.problem(
        f"{name} is evaluated in training mode: {_active_parts(wrong)} in {len(wrong)} of {len(calls)} evaluation calls.",
        confidence=0.93 if roles.loader_of(first) is not None else 0.9,
        evidence=evidence,
        location=first.location,
        fix=f"Call `{name}.{words.evaluation_mode}` before the evaluation at {first.location}, and "
        f"`{name}.{words.training_mode}` before training goes on.",
        limits="One evaluation call in training mode would have been seen.",
    )


def _mc_dropout(roles: CallRoles, wrong: list[RootCall], calls: int) -> Finding:
    first, words = wrong[0], words_of(roles.run)
    return item.problem(
        f"MC dropout: {_active_parts(wrong)} while {_name(roles, first)} is in evaluation mode, in {len(wrong)} of {calls} "
        "evaluation calls.",
        confidence=0.6,
        evidence=[
            Evidence(
                "The model was in evaluation mode, its dropout modules were not.",
                {"wrong": len(wrong), "evaluations": calls, "dropout_active": first.dropout_active},
                first.step,
                first.location,
            )
        ],
        location=first.location,
        fix="Right if the predictions are sampled on purpose (Monte Carlo dropout) and averaged; otherwise leave the dropout "
        f"modules in evaluation mode: do not call `{words.training_mode}` on them after `model.{words.evaluation_mode}`.",
        limits="One evaluation call with an active dropout module would have been seen.",
    )


def _switches(roles: CallRoles, family: int) -> list[Event]:
    """The switches of mode on the family's root modules, and those on modules that had never been called yet."""
    modules, family_of = roles.run.modules, roles.family_of_root
    known = [(event, modules.get(event.subject or -1)) for event in roles.run.events_of("mode")]
    return [event for event, module in known if module is None or (not module.path and family_of.get(module.id) == family)]


def _training_in_eval_mode(roles: CallRoles, family: int) -> Finding | None:
    training = roles.training.get(family, [])
    inactive = [one for one in training if _is_inactive(one.call)]
    if len(inactive) < _FEWEST_STEPS:
        return None
    first, name, words = inactive[0], _name(roles, inactive[0].call), words_of(roles.run)
    switches = [event for event in _switches(roles, family) if event.seq < first.call.seq and event.value == 0]
    switch = switches[-1] if switches else None
    before = training.index(first)
    if not before and _is_fine_tuned(roles, family):
        return item.not_checked(
            f"{name} is trained in evaluation mode from the first step on, with weights loaded from elsewhere: whether "
            f"dropout and BatchNorm are off on purpose cannot be told. If not, call `{name}.{words.training_mode}` before "
            "training."
        )
    evidence = [
        Evidence(
            f"{len(inactive)} of {len(training)} training steps ran with none of {first.call.dropout} dropout and "
            f"{first.call.batch_norm} BatchNorm modules in training mode, the first of them step {first.step.id}.",
            {"inactive": len(inactive), "training": len(training), "active_before": before,
             "dropout": first.call.dropout, "batch_norm": first.call.batch_norm},
            first.step.id,
            first.call.location,
        )
    ]  # fmt: skip
    if switch:
        told = f"`{words.evaluation_mode}` at {switch.location} was not undone before it."
        evidence.append(Evidence(told, {}, switch.step, switch.location))
    since = f", from step {first.step.id} on, after an `{words.evaluation_mode}` without a `{words.training_mode}`."
    return item.problem(
        f"{name} is trained in evaluation mode: {len(inactive)} of {len(training)} training steps"
        + (since if before and switch else "."),
        confidence=0.95 if before else 0.9,
        evidence=evidence,
        location=switch.location if switch and switch.location else first.call.location,
        fix=f"Call `{name}.{words.training_mode}` before training goes on at {first.call.location}, at the start of every epoch.",
        limits="Two training steps in evaluation mode would have been seen.",
    )


def _is_inactive(call: RootCall) -> bool:
    return not call.training and bool(call.dropout or call.batch_norm) and not call.dropout_active and not call.batch_norm_batch


def _is_fine_tuned(roles: CallRoles, family: int) -> bool:
    """Whether most parameters were loaded, or some are frozen: people then keep evaluation mode on purpose."""
    own = [
        parameter
        for parameter in roles.run.parameters.values()
        if not parameter.buffer and roles.family_of_root.get(parameter.root) == family
    ]
    loaded = sum(parameter.loaded is not None for parameter in own)
    return loaded > _LOADED_SHARE * len(own) or any(not parameter.trainable for parameter in own)


def _dropout_that_ignores_the_mode(roles: CallRoles, functional: list[Event]) -> Finding | None:
    """Functional dropout that is active during a call of a model in evaluation mode."""
    starts = [call.seq for call in roles.calls]
    active: list[tuple[Event, RootCall]] = []
    for event in functional:
        position = bisect_right(starts, event.seq)
        call = roles.calls[position - 1]
        # With dropout modules switched on the call may be one of theirs, which is another finding.
        if event.value and position and not call.training and not call.dropout_active:
            active.append((event, call))
    if not active:
        return None
    event, call = active[0]
    name, line = _name(roles, call), event.location
    times = sum(other.location == line for other, _ in active)
    return item.problem(
        f"The dropout call at {line} is active while {name} is in evaluation mode: {times} times.",
        confidence=0.95,
        evidence=[
            Evidence(
                f"Step {event.step}: {name} was called in evaluation mode, and functional dropout dropped values all the same.",
                {"times": times},
                event.step,
                line,
            )
        ],
        location=line,
        fix=f"Pass the mode on, `{either(roles.run, pytorch='F', mindspore='ops')}.dropout(x, p, training=self.training)`, or "
        "build one dropout layer in `__init__` and call that. Right only if the predictions are sampled on purpose (Monte Carlo "
        "dropout).",
        limits="One active dropout call in evaluation mode would have been seen.",
    )
