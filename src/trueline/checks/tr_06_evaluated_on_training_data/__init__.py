"""Train and validation data overlap

## What it checks
Whether samples that a model is evaluated on were trained on before: a validation split that overlaps with the training
split, a split made after samples were duplicated, a validation set taken from the training set without removing it there.

## Why it hurts accuracy
A model knows the answers to what it was trained on. The more of that a validation set holds, the better its figures look and
the less they say: overfitting goes unseen, the wrong epoch and the wrong settings are chosen, and the accuracy in use is lower.

## Method
Each sample's content is known by a 64-bit hash. Per model: the samples of its evaluations (from loaders that no training step
is fed by, and of tensors made by hand) against those whose gradients an optimizer applied before that evaluation.

- *Partial overlap*: at least 3 different samples and 1 % of the set, more than equal samples explain. The null is the share of
  training rows that have an equal row in the same epoch (and of evaluated rows within their set): binomial test, p < 1e-6. It
  must show in most of the set's evaluations and in the first one after half of the training data was used: samples that the
  training takes in later (a last fit on everything, self-training, active learning) do not count.
- *Copies made before the split*: most samples of one class have copies in the training set while another class has next to
  none, and evaluated samples of the copied classes were trained on.
- *Cut after a shuffle*: a pipeline that takes or skips samples of an order that changes in every epoch gives another part each
  time; an overlap in most of the evaluations is enough.
- *All of it trained on*: a part of the training set through another loader, when nothing else is evaluated on.

What is left alone: the loader that is trained on, the whole training set (training accuracy) or a part of it beside a separate
set, and a pass over all data, unless the line calls it a validation or test set; other models, so that the folds of a
cross-validation are not mixed up. A training that goes on with a new optimizer, a new loader or a loaded state starts afresh.

## Evidence
How many samples of the set were trained on before, their share, the share that equal samples explain, the chance, and
positions of examples in the set.

## Limits
Samples must be equal to the last bit: with augmentation, or another preparation for evaluation, an overlap goes unseen, and so
do overlapping windows of a series. Samples of fewer than 8 numbers are not judged. Where most training samples have equals an
overlap cannot be told from chance.

## What to do
Split first, by index, and only then oversample or augment the training part; check that the two index sets are disjoint.
"""

from __future__ import annotations

import math
import re

import msgspec

from trueline.checks.base import Item
from trueline.checks.parts import Part, worst_of
from trueline.checks.tr_06_evaluated_on_training_data.evaluation_sets import EvaluationPass, EvaluationSet, EvaluationSets
from trueline.checks.tr_06_evaluated_on_training_data.shared_samples import Repetition, chance_of_equal, repetition
from trueline.model import Batch, Conclusion, Evidence, Finding, Loader, Location
from trueline.store import Run
from trueline.views.binomial import log10_binomial_tail
from trueline.views.data_origin import where_selected

item = Item(__name__, __doc__)

CONSEQUENCES = ("hp.02",)
RANK = 38

_LOG_CHANCE = -6.0
_FEWEST_SHARED = 3
_SMALLEST_SHARE = 0.01
_NEARLY_ALL = 0.95
_MOST = 0.5
_FEWEST_NUMBERS = 8
_EXAMPLES = 5
_PASSES_JUDGED = 32
_HELD_OUT = re.compile(r"(val|valid|validation|test|tst|dev|holdout|heldout)(loader|load|dl|ds|set|data|dataset|iter|x|gen|it)?")
_OF_TRAINING = re.compile(r"(train|trn|tr)\w*")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class _Judged:
    """One evaluation of a set: what it shares with the training before it, and how likely that is by chance."""

    def __init__(self, looked_at: EvaluationPass, known: Repetition) -> None:
        self.looked_at = looked_at
        self.rows = len(looked_at.samples)
        self.shared = len(looked_at.seen)
        self.share = self.shared / max(1, self.rows)
        self.expected = chance_of_equal(known, looked_at)
        self.log_chance = log10_binomial_tail(self.shared, self.rows, self.expected)
        self.of_copied = _share_of_classes(looked_at, known.copied)

    @property
    def overlaps(self) -> bool:
        enough = len(set(self.looked_at.seen)) >= _FEWEST_SHARED and self.share >= _SMALLEST_SHARE
        return enough and (self.log_chance < _LOG_CHANCE or self.of_copied >= _MOST)

    @property
    def is_all_trained(self) -> bool:
        return self.share >= _NEARLY_ALL

    @property
    def holds_all_training(self) -> bool:
        return self.looked_at.coverage >= _NEARLY_ALL

    @property
    def comes_late(self) -> bool:
        """Whether most of the training's samples had been used by then."""
        return len(self.looked_at.before) >= _MOST * len(self.looked_at.all_trained)


def conclude(run: Run) -> Finding:
    sets = EvaluationSets(run)
    if not sets.trained:
        return item.not_applicable("No training steps with batches that can be followed were seen in this run.")
    found = sets.all()
    if not found:
        return item.not_applicable("Nothing but the training batches themselves was evaluated: there is no other set to compare.")
    judged = [(one, _judge(run, one) if _is_readable(one) else None) for one in found]
    looked_at = [part for _, looks in judged for look in looks or () for part in look]
    separate = any(part.comes_late and not part.overlaps for part in looked_at)
    training = [run.loaders[number] for number in sets.training_loaders]
    chosen = worst_of(
        Part(f"the set of {one.location}", _conclude_set(one, looks, training, separate=separate)) for one, looks in judged
    )
    if chosen.conclusion is not Conclusion.PROBLEM_FOUND:
        return chosen
    return msgspec.structs.replace(chosen, location=where_selected(run, chosen.location))


def _conclude_set(one: EvaluationSet, looks: list[list[_Judged]] | None, training: list[Loader], *, separate: bool) -> Finding:
    if looks is None:
        return item.not_checked(
            f"samples of fewer than {_FEWEST_NUMBERS} numbers: equal ones are natural, so that an overlap proves nothing."
        )
    problem = _problem(one, looks, training, separate=separate)
    return problem or _nothing_found([part for look in looks for part in look])


def _is_readable(one: EvaluationSet) -> bool:
    return _numbers_per_sample(one.passes[0].batches[0]) >= _FEWEST_NUMBERS


def _numbers_per_sample(batch: Batch) -> int:
    return sum(math.prod(field.get("shape", [0])[1:]) for field in batch.fields if len(field.get("shape", [])) > 1)


def _share_of_classes(looked_at: EvaluationPass, classes: tuple[float, ...]) -> float:
    """Of the evaluated samples of these classes, the share that was trained on."""
    wanted, seen = 0, 0
    for batch in looked_at.batches if classes else ():
        for sample, label in zip(batch.fingerprints, batch.targets or (), strict=False):
            wanted += label in classes
            seen += label in classes and sample in looked_at.before
    return seen / wanted if wanted else 0.0


def _judge(run: Run, one: EvaluationSet) -> list[list[_Judged]]:
    """The looks at a set after training began, each in the parts that have to be judged apart."""
    known = repetition(one.training, run.loaders)
    trained = [look for look in one.passes if look.before]
    # Evenly spread ones tell the same of a set that was looked at hundreds of times.
    spread = trained[:: max(1, len(trained) // _PASSES_JUDGED)]
    return [[_Judged(part, known) for part in ([look] if one.loader is not None else _by_hand(look))] for look in spread]


def _by_hand(look: EvaluationPass) -> list[EvaluationPass]:
    """One line may look at several sets, one after the other: batches of training samples only, and the others. All in one
    piece when it goes over all the data in steps, one of which holds the border."""

    def of(batches: list[Batch]) -> EvaluationPass:
        return EvaluationPass(batches, look.location, look.before, look.all_trained)

    only = [batch for batch in look.batches if all(sample in look.before for sample in batch.fingerprints)]
    if not only or len(only) == len(look.batches):
        return [look]
    apart = {batch.seq for batch in only}
    others = [batch for batch in look.batches if batch.seq not in apart]
    mixed = [batch for batch in others if any(sample in look.before for sample in batch.fingerprints)]
    if len(mixed) == 1 and of(only).coverage < _NEARLY_ALL:
        return [look]
    return [of(only), of(others)]


def _is_the_training_set(one: EvaluationSet, training: list[Loader]) -> bool:
    """Whether the loader reads the very dataset of a training loader, whole: what that has not drawn yet is no other set."""
    if one.loader is None or one.loader.dataset == "Subset":
        return False
    own = (one.loader.settings.get("dataset_object"), one.loader.dataset, one.loader.length)
    return any((other.settings.get("dataset_object"), other.dataset, other.length) == own for other in training)


def _cut_after_a_shuffle(one: EvaluationSet) -> bool:
    """Whether a pipeline takes or skips samples of an order that is another one in every epoch."""
    shuffled = one.loader is not None and one.loader.sampler in ("RandomSampler", "ShuffleDataset")
    return shuffled and one.loader is not None and any(name in ("Take", "Skip") for name, _ in one.loader.lines)


def _problem(one: EvaluationSet, looks: list[list[_Judged]], training: list[Loader], *, separate: bool) -> Finding | None:
    late = [look for look in looks if any(part.comes_late for part in look)]
    overlapping = [part for look in looks for part in look if part.overlaps]
    if _cut_after_a_shuffle(one) and len(overlapping) > _MOST * sum(map(len, looks)):
        return _finding(one, overlapping[-1], 0.9)
    if not late or not any(part.overlaps for part in late[0]):
        # The first look was an honest one: the training took these samples in later on (self-training, a last fit on all data).
        return None
    passes = [part for look in looks for part in look]
    own = _is_the_training_set(one, training)
    mixed = [part for part in overlapping if not own and not part.is_all_trained and not part.holds_all_training]
    if one.loader is None:
        # Parts of one look were judged apart: what is all trained on is no witness against those that are mixed.
        if mixed and any(part in mixed for part in late[0]) and len(mixed) >= len(passes) - len(overlapping):
            return _finding(one, mixed[-1], 0.85)
        return _problem_by_name(one, passes, separate=separate)
    if len(overlapping) <= _MOST * len(passes):
        return None
    last = overlapping[-1]
    if last in mixed:
        return _finding(one, last, 0.95)
    if (
        (own or last.is_all_trained)
        and not last.holds_all_training
        and not separate
        and not _is_named(one.location, _OF_TRAINING)
    ):
        return _finding(one, last, 0.85)
    return _problem_by_name(one, passes, separate=separate)


def _problem_by_name(one: EvaluationSet, passes: list[_Judged], *, separate: bool) -> Finding | None:
    """What may be a look at the training accuracy or at all data, unless the line takes it for a held-out set."""
    overlapping = [part for part in passes if part.overlaps]
    named = _is_named(one.location, _HELD_OUT) and not _is_named(one.location, _OF_TRAINING)
    if not named or len(overlapping) <= _MOST * len(passes) or (separate and one.loader is None):
        return None
    return _finding(one, overlapping[-1], 0.75)


def _is_named(location: Location | None, pattern: re.Pattern[str]) -> bool:
    """Whether a word of the line's assigned name (of the whole line, where nothing is assigned) fits."""
    source = (location.source or "") if location is not None else ""
    names = re.sub(r"(['\"]).*?\1", "", source.partition("=")[0] if re.match(r"[\w\s,.\[\]:]+=[^=]", source) else source)
    return any(pattern.fullmatch(word.lower()) for word in _WORDS.findall(names))


def _finding(one: EvaluationSet, part: _Judged, confidence: float) -> Finding:
    where = "The evaluation loader's" if one.loader is not None else "The evaluated"
    chance = f"p < 1e-{min(300, math.floor(-part.log_chance))}" if part.log_chance < -1 else "no less than chance"
    evidence = [
        Evidence(
            f"{part.shared} of {part.rows} evaluated samples ({part.share:.1%}) were trained on before, equal to the last bit; "
            f"equal samples within the sets explain {part.expected:.1%} ({chance}). Positions in the set: {_examples(part)}.",
            {"shared": part.shared, "samples": part.rows, "share": part.share, "expected": part.expected,
             "log10_chance": part.log_chance},
            part.looked_at.batches[-1].step,
            part.looked_at.location,
        )
    ]  # fmt: skip
    if part.of_copied >= _MOST:
        evidence.append(
            Evidence(
                f"Most training samples of some classes have copies while others have none, and {part.of_copied:.0%} of the "
                "evaluated samples of these classes are among them: samples were repeated before the split.",
                {"share_of_copied_classes": part.of_copied},
            )
        )
        fix = "Split into training and validation data first, then oversample the training part only."
    else:
        fix = "Draw the two sets from disjoint indices, and leave what is evaluated on out of the training data."
    return item.problem(
        f"{where} set overlaps with the training data: {part.shared} of {part.rows} samples ({part.share:.0%}) were trained on.",
        confidence=confidence,
        evidence=evidence,
        location=one.location,
        fix=fix,
        limits=_limits(part),
    )


def _examples(part: _Judged) -> str:
    places = [place for place, sample in enumerate(part.looked_at.samples) if sample in part.looked_at.before]
    return ", ".join(map(str, places[:_EXAMPLES])) + (" …" if len(places) > _EXAMPLES else "")


def _limits(part: _Judged) -> str:
    fewest = max(_FEWEST_SHARED, math.ceil(_SMALLEST_SHARE * part.rows))
    smallest = next(
        (hits for hits in range(fewest, part.rows + 1) if log10_binomial_tail(hits, part.rows, part.expected) < _LOG_CHANCE), None
    )
    seen = f"{smallest} or more shared samples of {part.rows}" if smallest is not None else "no overlap (too many equal samples)"
    return f"{seen} would have been seen, where they are equal to the last bit."


def _nothing_found(parts: list[_Judged]) -> Finding:
    if not parts:
        return item.not_applicable("Nothing was evaluated after a training step on samples that can be followed.")
    honest = [part for part in parts if not part.overlaps]
    if not honest:
        return item.not_applicable(
            "What was evaluated is the training data, as for a training accuracy: no set that should be separate was seen."
        )
    late = [part for part in honest if part.comes_late] or honest
    part = min(late, key=lambda one: (one.share >= _SMALLEST_SHARE, -one.rows))
    if part.expected >= 1 or log10_binomial_tail(part.rows, part.rows, part.expected) >= _LOG_CHANCE:
        return item.not_checked("so many training samples are equal, or so few are evaluated, that no overlap could be told.")
    return item.no_problem(
        f"{part.rows} evaluated samples: {part.shared} equal one that was trained on before, no more than by chance.",
        limits=_limits(part),
        evidence=[
            Evidence(
                f"{len(honest)} evaluations; equal samples within the sets explain up to {part.expected:.1%}.",
                {"shared": part.shared, "samples": part.rows, "expected": part.expected},
            )
        ],
    )
