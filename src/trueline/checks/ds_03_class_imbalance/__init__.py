"""Classes unbalanced, or too few samples

## What it checks
How many training samples each class has, and whether the model fails on the rare ones because of it.

## Why it hurts accuracy
The loss is a mean over samples: a class with one sample in a hundred moves the weights a hundredth as much. The model gains
more from never predicting it than from learning it, and the overall accuracy hides that.

## Method
Samples per class are counted in one pass over the training data, as the model saw them: what a weighted sampler or an
oversampled dataset repeats counts again, so a sampler that evens the classes out is seen as even.

- *Unbalanced*: classes that the largest outnumbers at least 8 times are rare. A problem when the rare classes together are
  recognised less often than the others by at least 25 points (binomial: as few hits at the others' rate have a chance below
  1e-4), in the evaluation; without an evaluation, on the training samples themselves, when fewer than half of the rare ones are
  right. Never when the loss is given class weights, or its values per sample (`reduction="none"`), which may be weighted by hand.
- *Too few*: at most 10 samples per class on average while the evaluation has at least five times as many samples as
  the training; a problem when training gets nearly all right (95 %), evaluation is better than chance but at least 20 points
  worse (binomial, p < 1e-6).

## Evidence
Counts per class (a bar chart in the report), their standard deviation, the share of the rarest, recall of rare and other classes.

## Limits
Imbalance alone is no problem: without recall it is only described. Weights inside a loss of one's own are not seen. Models of
language and other vocabularies (more than 100 classes on whole-number sequences) are left alone, as is detection.

## What to do
Collect more of the rare classes; else give the loss `weight=` (or `pos_weight=`), or draw with a `WeightedRandomSampler`. Judge
by recall per class or balanced accuracy instead of accuracy.
"""

from __future__ import annotations

from typing import Any

from trueline.checks.base import Item
from trueline.checks.ds_03_class_imbalance.class_counts import ClassCounts, Recall, class_counts, recall
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.binomial import log10_binomial_tail

item = Item(__name__, __doc__)

CONSEQUENCES = ("hp.02",)
RANK = 46

_RARE = 8.0
_POINTS = 0.25
_LOG_CHANCE = -4.0
_UNLEARNT = 0.5
_FEW = 10.0
_MORE_HELD_OUT = 5
_FEW_POINTS = 0.2
_FEW_LOG_CHANCE = -6.0
_LEARNT = 0.95
_VOCABULARY = 100


def conclude(run: Run) -> Finding:
    counts = class_counts(run)
    if counts is None:
        return item.not_applicable("No training samples with one class label each were seen.")
    if len(counts.seen) > _VOCABULARY and counts.source.takes_sequences:
        return item.not_applicable("The classes are a vocabulary: words and tokens are rare and frequent by nature.")
    if not any(scores.training for scores in run.scores) and not ("scores" in run.unseen and run.scores):
        if "scores" in run.unseen:
            return _without_recall(counts)
        return item.not_applicable("No classifier was trained on these labels.") if run.loss_calls else _without_recall(counts)
    held_out = recall(run, training=False)
    trained = recall(run, training=True)
    rare = counts.rare(_RARE)
    correction = _correction(run)
    evidence = [_evidence_of(counts)]
    if rare and correction is not None:
        return item.no_problem(
            f"The classes are unbalanced (the rarest has {counts.rarest_share:.1%} of the samples), and {correction}.",
            limits="Whether the correction is strong enough is not judged.",
            evidence=evidence,
        )
    if rare:
        return _judge_rare(counts, rare, held_out, trained, evidence)
    few = _too_few(counts, held_out, trained, evidence)
    if few is not None:
        return few
    return item.no_problem(
        f"The largest of {len(counts.seen)} classes has {counts.largest / min(counts.seen.values()):.1f} times as many samples "
        "as the rarest.",
        limits=f"A class that another outnumbers {_RARE:.0f} times would have been looked at.",
        evidence=evidence,
    )


def _without_recall(counts: ClassCounts) -> Finding:
    return item.not_checked(
        f"{len(counts.seen)} classes with {min(counts.seen.values())} to {counts.largest} samples, but how well each is "
        "recognised was not recorded."
    )


def _correction(run: Run) -> str | None:
    """What in the loss may make up for rare classes."""
    for call in run.loss_calls:
        if not call.grad:
            continue
        for name in ("weight", "pos_weight"):
            if str(call.settings.get(name)).startswith("tensor"):
                return f"the loss is given `{name}`"
        if call.settings.get("reduction") == "none":
            return "the loss is taken per sample, so it may be weighted by hand"
    return None


def _evidence_of(counts: ClassCounts) -> Evidence:
    values: dict[str, Any] = {
        "counts": {str(label): count for label, count in counts.seen.items()},
        "relative_standard_deviation": round(counts.spread, 3),
        "rarest_share": counts.rarest_share,
    }
    loader = counts.source.loader
    weighted = loader is not None and bool(loader.settings.get("weighted"))
    if counts.distinct != counts.seen:
        values["different_samples"] = {str(label): count for label, count in counts.distinct.items()}
    how = " drawn by a weighted sampler" if weighted else ""
    return Evidence(
        f"{counts.samples} samples of {len(counts.seen)} classes in one pass{how}: {min(counts.seen.values())} to "
        f"{counts.largest} per class, standard deviation {counts.spread:.2f} of the mean.",
        values,
        location=counts.source.location,
    )


def _judge_rare(
    counts: ClassCounts, rare: set[int], held_out: Recall | None, trained: Recall | None, evidence: list[Evidence]
) -> Finding:
    others = set(counts.seen) - rare
    for judged, where in ((held_out, "evaluation"), (trained, "training")):
        if judged is None:
            continue
        hits, total = judged.of(rare)
        other_hits, other_total = judged.of(others)
        if not total or not other_total:
            continue
        share, other_share = hits / total, other_hits / other_total
        chance = log10_binomial_tail(total - hits, total, 1 - other_share)
        evidence.append(
            Evidence(
                f"In {where} {share:.0%} of {total} samples of rare classes are recognised, {other_share:.0%} of {other_total} "
                f"others (chance 1e{chance:.0f} at equal rates).",
                {"recall_rare": share, "recall_others": other_share, "log10_chance": chance},
            )
        )
        unlearnt = where == "evaluation" or share < _UNLEARNT
        if other_share - share >= _POINTS and chance < _LOG_CHANCE and unlearnt:
            return _problem_rare(counts, rare, where, share, other_share, evidence)
        return item.no_problem(
            f"The classes are unbalanced (the rarest has {counts.rarest_share:.1%} of the samples), but {where} shows no loss "
            f"by it: {share:.0%} of the rare samples are recognised, {other_share:.0%} of the others.",
            limits=f"A recall of {max(0.0, other_share - _POINTS):.0%} on the rare classes would have been a problem, with "
            f"enough samples of them (there are {total}).",
            confidence=0.7,
            evidence=evidence,
        )
    return _without_recall(counts)


def _problem_rare(
    counts: ClassCounts, rare: set[int], where: str, share: float, other_share: float, evidence: list[Evidence]
) -> Finding:
    shown = ", ".join(f"{label} ({counts.seen[label]})" for label in sorted(rare)[:5])
    return item.problem(
        f"The model fails on rare classes: {share:.0%} of them are recognised in {where}, {other_share:.0%} of the others. Rare: "
        f"{shown}{' …' if len(rare) > 5 else ''} of {counts.samples} samples.",
        confidence=0.85 if where == "evaluation" else 0.75,
        evidence=evidence,
        location=counts.source.location,
        fix="Give the loss class weights (`weight=`, for two classes `pos_weight=`) or draw with a `WeightedRandomSampler`; "
        "better, collect more of the rare classes.",
        limits=f"Classes outnumbered {_RARE:.0f} times whose recall is {_POINTS:.0%} lower would have been seen.",
    )


def _too_few(counts: ClassCounts, held_out: Recall | None, trained: Recall | None, evidence: list[Evidence]) -> Finding | None:
    """Hardly any samples, learnt by heart, while there is plenty to show that it does not carry over."""
    classes = len(counts.seen)
    distinct = sum(counts.distinct.values())
    if held_out is None or trained is None or distinct > _FEW * classes or held_out.total < _MORE_HELD_OUT * distinct:
        return None
    known = set(counts.seen)
    hits, total = held_out.of(known)
    own_hits, own_total = trained.of(known)
    if not total or not own_total:
        return None
    share, own = hits / total, own_hits / own_total
    above_chance = log10_binomial_tail(hits, total, max(held_out.samples.values()) / held_out.total) < _FEW_LOG_CHANCE
    chance = log10_binomial_tail(total - hits, total, 1 - min(own, 0.99))
    if own < _LEARNT or not above_chance or own - share < _FEW_POINTS or chance > _FEW_LOG_CHANCE:
        return None
    evidence.append(
        Evidence(
            f"{own:.0%} of the training samples are recognised, {share:.0%} of {total} others (chance 1e{chance:.0f}).",
            {"recall_training": own, "recall_evaluation": share, "log10_chance": chance},
        )
    )
    return item.problem(
        f"Too few training samples: {distinct} for {classes} classes, learnt by heart ({own:.0%} right) and {share:.0%} right "
        f"on {total} others.",
        confidence=0.7,
        evidence=evidence,
        location=counts.source.location,
        fix="Train on more of the data that is there, or collect more; until then augment, or start from a pretrained model.",
        limits=f"Seen where the evaluation is at least {_MORE_HELD_OUT} times as large as the training.",
    )
