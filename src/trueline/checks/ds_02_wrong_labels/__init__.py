"""Wrong labels

## What it checks
Whether the labels of the training samples are right: samples that the model places deep inside another class, equal inputs
with different labels, classes that training and evaluation number differently, labels that the loss cannot mean.

## Why it hurts accuracy
A wrong label pulls the decision boundary to the wrong side, and a model that is large enough learns it by heart: training
accuracy rises while accuracy on clean data falls. Wrong labels in the evaluation hide what the model can do.

## Method
The margin of a sample (score of its label minus the best other score) is averaged over stretches of the training that double
in length, beginning at a quarter of it (area under the margin). A sample disagrees when its mean margin is negative, and lies
*deep* when it belongs to the other class by more than the median sample of that class.

- *Null*: classes that overlap. Their samples on the wrong side crowd at the boundary: when margins are logistically
  distributed and a share e of a class disagrees, a share of e squared lies deep (Gaussian margins give fewer, so does every
  overlap that was tried). A problem when the number of deep samples has a chance below 1e-4 (binomial, corrected for the
  stretches), is at least 1.5 times what overlap gives, and at least 2 % of the samples. Classes of which most samples
  disagree do not count, nor do two classes whose deep samples lie further out than the class itself: a group of its own.
- *Equal inputs*: byte-equal inputs of at least 8 numbers with different labels in one pass: at least 5, and 1 % of the inputs.
- *Renumbered classes*: at least two classes that the evaluation calls, one to one, by other numbers than the training, each
  for three quarters of its samples, when training gets them right (binomial, p < 1e-6).
- *Absent class*: the one class of the evaluation that no training sample has, called by one other class that training gets
  right (binomial against an even split, p < 1e-3).
- *Unrelated labels*: training is right for 20 points more of its samples than independent labels would give, evaluation for
  no more (by less than a quarter of that, at 99.5 %), and the inputs are no noise: neighbouring numbers go together.
- *Out of range*: targets outside of 0 to 1 in a binary cross-entropy, or a class that the loss refused.

## Evidence
Deep samples against what overlap gives, the share that disagrees, the most suspicious samples with their place in the loader.
`trueline review RUN` shows them with their content.

## Limits
The model must have learnt most of the labels (at least 60 % right) before it learns the rest by heart. With two classes, a
fifth of wrong labels looks like overlap when samples are few. Labels that have nothing to do with the inputs are seen only
where training learns them by heart and an evaluation of 100 samples shows it; noise with random labels is taken for a test of the
program. A class that is wrong throughout cannot be seen without an evaluation that says otherwise.

## What to do
Look at the samples on the review sheet, correct or drop those that are wrong, and look for what they have in common: a class,
a file, an annotator, a join of two tables in different order.
"""

from __future__ import annotations

import math
from collections import Counter

from trueline.checks.base import Item
from trueline.checks.ds_02_wrong_labels.label_contradictions import (
    Absence,
    Renumbering,
    absent_class,
    binary_labels_out_of_range,
    conflicting_labels,
    label_out_of_range,
    renumbered_classes,
)
from trueline.checks.ds_02_wrong_labels.label_origin import where_labelled
from trueline.checks.ds_02_wrong_labels.unrelated_labels import Unrelated, unrelated_labels
from trueline.model import Evidence, Finding, Location
from trueline.store import Run
from trueline.views.binomial import log10_binomial_tail
from trueline.views.margins import MOST_DISAGREEMENT, Stretch, Visits, suspicion, training_visits
from trueline.views.sample_places import place_of_samples

item = Item(__name__, __doc__)
NEEDS = ("scores",)

CONSEQUENCES = ("hp.01", "hp.02", "hp.03")
RANK = 45

_LOG_CHANCE = -4.0
_TIMES = 1.5
_SHARE = 0.02
_FEWEST_DEEP = 8
_FEWEST_SAMPLES = 100
_OWN_GROUP = 0.5
_RETURNS = 2.0
_LISTED = 12
_REVIEW = "`trueline review {}` shows the most suspicious samples."


def conclude(run: Run) -> Finding:
    broken = _out_of_range(run)
    if broken is not None:
        return broken
    if not run.events_of("backward"):
        return item.not_applicable("No training was seen in this run.")
    visits = training_visits(run)
    if visits is None or not visits.count:
        if any(batch.target_kind == "class" for batch in run.batches) and not run.scores:
            return item.not_checked("how the model judged its samples was not recorded.")
        return item.not_applicable("No classifier was trained with one class label per sample.")
    stretches = visits.stretches()
    learnt = [stretch for stretch in stretches if stretch.disagreement < MOST_DISAGREEMENT]
    if learnt:
        renumbered = renumbered_classes(run, learnt[-1])
        if renumbered is not None:
            return _problem_renumbered(run, renumbered)
        absent = absent_class(run, learnt[-1])
        if absent is not None:
            return _problem_absent(run, absent)
    conflicts = conflicting_labels(run)
    if conflicts is not None and conflicts.are_many:
        examples = [{"fingerprint": f"{sample:016x}", "labels": list(labels)} for sample, labels in conflicts.labels.items()]
        return item.problem(
            f"{len(conflicts.labels)} of {conflicts.samples} training inputs appear more than once, with different labels.",
            confidence=0.9,
            evidence=[
                Evidence(
                    "Byte-equal inputs came with several labels within one pass over the data; at most one of them is right.",
                    {"inputs": len(conflicts.labels), "of": conflicts.samples, "examples": examples[:_LISTED]},
                    conflicts.batch.step,
                )
            ],
            location=where_labelled(run, _source(run, conflicts.batch.seq)),
            fix=f"Find the copies and keep the right label of each. {_REVIEW.format(run.info.name)}",
            limits="Copies that differ in a single bit are not seen as equal.",
        )
    unrelated = unrelated_labels(run, stretches)
    if unrelated is not None:
        return _problem_unrelated(run, unrelated)
    return _judge_margins(run, visits, stretches, learnt)


def _out_of_range(run: Run) -> Finding | None:
    refused = label_out_of_range(run)
    if refused is not None:
        label, message = refused
        last = next((call.location for call in reversed(run.root_calls) if call.location), None)
        batch = max((batch.seq for batch in run.batches), default=None)
        return item.problem(
            f"A label is {label}, which the loss refused: it is outside of the model's classes.",
            confidence=0.9,
            evidence=[Evidence(f"The script ended with: {message}", {"label": label})],
            location=(None if batch is None else _source(run, batch)) or last,
            fix="Number the classes from 0 to their count minus one, and give the model as many outputs.",
            limits="Any label that the loss refuses is seen.",
        )
    call = binary_labels_out_of_range(run)
    if call is None:
        return None
    low, high = call.target["min"], call.target["max"]
    return item.problem(
        f"The targets of a binary cross-entropy go from {low:g} to {high:g}: it takes 0 to 1, and is no loss beyond that.",
        confidence=0.95,
        evidence=[
            Evidence(
                f"{call.kind} was given targets from {low:g} to {high:g}.", {"min": low, "max": high}, call.step, call.location
            )
        ],
        location=call.location,
        fix="Map the labels to 0 and 1 before the loss, for example `target = (label == positive).float()`.",
        limits="Any target outside of 0 to 1 on a step that was looked at in full is seen.",
    )


def _problem_renumbered(run: Run, found: Renumbering) -> Finding:
    shown = ", ".join(f"{label} as {predicted}" for label, predicted in sorted(found.classes.items())[:6])
    least = min(found.shares.values())
    return item.problem(
        f"Training and evaluation number their classes differently: the model calls {shown}.",
        confidence=0.9,
        evidence=[
            Evidence(
                f"{len(found.classes)} classes of the evaluation are predicted, one to one, as another class, for at least "
                f"{least:.0%} of their samples, while training gets these classes right.",
                {"classes": {str(label): predicted for label, predicted in found.classes.items()}, "samples": found.counts},
            )
        ],
        location=where_labelled(run, _source(run, found.batch)),
        fix="Make the numbers of the classes once, from one sorted list of names, and use them for training and evaluation.",
        limits="Two exchanged classes with 8 evaluation samples each, or more, would have been seen.",
    )


def _problem_absent(run: Run, found: Absence) -> Finding:
    return item.problem(
        f"No training sample is labelled {found.label}, and the model calls {found.hits} of {found.total} such samples of the "
        f"evaluation {found.predicted}: class {found.label} was labelled {found.predicted} for training, or is missing from it.",
        confidence=0.75,
        evidence=[
            Evidence(
                f"Class {found.label} has {found.total} samples in the last evaluations and none in training.",
                {"label": found.label, "predicted": found.predicted, "hits": found.hits, "total": found.total},
            )
        ],
        location=where_labelled(run, _training_source(run)),
        fix=f"Look at training samples that are labelled {found.predicted}, and at where labels are made, for those of class "
        f"{found.label}.",
        limits="One class that is missing from training, with 11 evaluation samples or more that are all called alike.",
    )


def _problem_unrelated(run: Run, found: Unrelated) -> Finding:
    return item.problem(
        f"The labels have nothing to do with their inputs: training gets {found.training:.0%} right by heart, evaluation "
        f"{found.evaluation:.0%}, which is what chance gives ({found.chance:.0%}).",
        confidence=0.7,
        evidence=[
            Evidence(
                f"{found.judged} samples of the last evaluations are right no more often than if their labels were drawn anew.",
                {"accuracy": found.evaluation, "chance": found.chance, "samples": found.judged},
            ),
            Evidence(
                "The inputs are no noise: neighbouring numbers go together more than noise does.",
                {"times_noise": round(found.structure, 1)},
            ),
        ],
        location=where_labelled(run, _training_source(run)),
        fix="Look for a place where inputs and labels are sorted, shuffled, filtered or joined separately, for training or for "
        f"evaluation. {_REVIEW.format(run.info.name)}",
        limits="Labels without any relation to the inputs are seen when training has learnt them by heart.",
    )


def _judge_margins(run: Run, visits: Visits, stretches: list[Stretch], learnt: list[Stretch]) -> Finding:
    returning = visits.count / max(1, len({*visits.samples.tolist()}))
    if not visits.from_loader and visits.passes < _RETURNS and returning < _RETURNS:
        return item.not_applicable("Samples come once only and from no dataset: their labels cannot be followed.")
    if visits.are_bounded:
        return item.not_checked("the scores are bounded like probabilities, so that deep and shallow cannot be told apart.")
    if not learnt:
        return item.not_checked(
            "the model never gets 60 % of its training samples right: labels that are wrong cannot be told from samples that "
            "are hard. (Labels that have nothing to do with their inputs look like this, too.)"
        )
    large = [stretch for stretch in learnt if len(stretch.samples) >= _FEWEST_SAMPLES]
    if not large:
        return item.not_checked(f"fewer than {_FEWEST_SAMPLES} samples were judged.")
    tests = sorted(large, key=lambda stretch: _chance(visits, stretch))
    correction = math.log10(len(large))
    for stretch in tests:
        if _is_decisive(visits, stretch, correction):
            return _problem_deep(run, visits, stretches, stretch, correction)
    limit = min(_smallest_seen(visits, stretch, correction) for stretch in large)
    best = tests[0]
    return item.no_problem(
        f"{int(best.deep.sum())} of {len(best.samples)} samples lie deep inside another class, which overlap explains.",
        limits=f"Wrong labels of about {min(1.0, 2 * limit):.1%} of the samples, spread over the classes, would have been seen.",
        confidence=0.8,
        evidence=[_evidence_of(best)],
    )


def _effective(visits: Visits, stretch: Stretch) -> float:
    """Augmentation makes a new sample of every visit, whose judgements are not independent: they count once per pass."""
    single = visits.count <= 1.2 * len({*visits.samples.tolist()})
    return 1.0 / max(1, stretch.end - stretch.first) if single and visits.passes > 1 else 1.0


def _chance(visits: Visits, stretch: Stretch) -> float:
    share = _effective(visits, stretch)
    count = len(stretch.samples)
    return log10_binomial_tail(math.floor(share * stretch.deep.sum()), math.ceil(share * count), stretch.expected_deep / count)


def _is_decisive(visits: Visits, stretch: Stretch, correction: float) -> bool:
    deep, count = int(stretch.deep.sum()), len(stretch.samples)
    enough = deep >= _FEWEST_DEEP and deep >= _SHARE * count and deep >= _TIMES * stretch.expected_deep
    own_group = visits.classes <= 2 and stretch.beyond >= _OWN_GROUP
    return enough and not own_group and _chance(visits, stretch) + correction < _LOG_CHANCE


def _smallest_seen(visits: Visits, stretch: Stretch, correction: float) -> float:
    """The smallest share of deep samples that would have been a problem."""
    count = len(stretch.samples)
    share = _effective(visits, stretch)
    least = max(_FEWEST_DEEP, math.ceil(_SHARE * count), math.ceil(_TIMES * stretch.expected_deep))
    total = math.ceil(share * count)
    while least < count:
        if log10_binomial_tail(math.floor(share * least), total, stretch.expected_deep / count) + correction < _LOG_CHANCE:
            break
        least += max(1, count // 500)
    return least / count


def _evidence_of(stretch: Stretch) -> Evidence:
    return Evidence(
        f"Passes {stretch.first + 1} to {stretch.end} of {stretch.passes}: {stretch.disagreement:.1%} of {len(stretch.samples)} "
        f"samples disagree with their label; {int(stretch.deep.sum())} lie deep, overlap gives about {stretch.expected_deep:.0f} "
        f"(chance 1e{stretch.log10_chance:.0f}).",
        {
            "samples": len(stretch.samples),
            "disagreement": stretch.disagreement,
            "deep": int(stretch.deep.sum()),
            "expected": stretch.expected_deep,
            "log10_chance": stretch.log10_chance,
        },
    )


def _problem_deep(run: Run, visits: Visits, stretches: list[Stretch], stretch: Stretch, correction: float) -> Finding:
    samples, scores = suspicion(stretches)
    labels = dict(zip(stretch.samples.tolist(), stretch.labels.tolist(), strict=True))
    predicted = dict(zip(stretch.samples.tolist(), stretch.predicted.tolist(), strict=True))
    places = place_of_samples(run, set(samples[:_LISTED].tolist()))
    listed = [
        {
            "fingerprint": f"{sample:016x}",
            "label": labels.get(sample),
            "predicted": predicted.get(sample),
            "margin": round(float(score), 2),
            **places.get(sample, {}),
        }
        for sample, score in zip(samples[:_LISTED].tolist(), scores[:_LISTED].tolist(), strict=True)
    ]
    deep = int(stretch.deep.sum())
    pairs = Counter(zip(stretch.labels[stretch.deep].tolist(), stretch.predicted[stretch.deep].tolist(), strict=True))
    (label, other), most = pairs.most_common(1)[0]
    evidence = [
        _evidence_of(stretch),
        Evidence(
            f"The deep samples carry {len({pair[0] for pair in pairs})} labels; most often {label} where the model says "
            f"{other} ({most} times).",
            {"pairs": {f"{one} for {two}": count for (one, two), count in pairs.most_common(8)}},
        ),
        Evidence(f"The {len(listed)} most suspicious samples.", {"suspicious": listed}),
    ]
    decided = stretch.log10_chance < 2 * _LOG_CHANCE
    return item.problem(
        f"{deep / len(stretch.samples):.0%} to {stretch.disagreement:.0%} of the training labels look wrong: {deep} of "
        f"{len(stretch.samples)} samples lie as deep inside another class as that class's own samples.",
        confidence=(0.9 if decided else 0.75) if visits.classes > 2 else (0.75 if decided else 0.65),
        evidence=evidence,
        location=where_labelled(run, _training_source(run)),
        fix=f"Look at these samples and correct or drop the wrong ones. {_REVIEW.format(run.info.name)}",
        limits=f"Wrong labels of about {min(1.0, 2 * _smallest_seen(visits, stretch, correction)):.1%} of the samples, spread "
        "over the classes, would have been seen.",
    )


def _training_source(run: Run) -> Location | None:
    judged = {scores.batch for scores in run.scores if scores.training}
    loaders = Counter(batch.loader for batch in run.batches if batch.seq in judged and batch.loader is not None)
    if loaders and (built := run.loaders[loaders.most_common(1)[0][0]].built) is not None:
        return built
    calls = Counter(call.location for call in run.root_calls if call.batch in judged and call.grad and call.location)
    return calls.most_common(1)[0][0] if calls else None


def _source(run: Run, batch_seq: int) -> Location | None:
    """The line that built the loader of a batch; for a hand-made one the call that it was fed to."""
    batch = next((batch for batch in run.batches if batch.seq == batch_seq), None)
    if batch is not None and batch.loader is not None and run.loaders[batch.loader].built is not None:
        return run.loaders[batch.loader].built
    return next((call.location for call in run.root_calls if call.batch == batch_seq and call.location), None)
