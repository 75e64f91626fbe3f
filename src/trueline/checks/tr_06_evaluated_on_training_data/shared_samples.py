"""How many samples two sets may have in common by chance, given how often equal samples occur within each."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from trueline.checks.tr_06_evaluated_on_training_data.evaluation_sets import EvaluationPass, Trained
from trueline.model import Batch, Loader

# A share of zero among n samples is still compatible with one of 3 / n (95 % confidence).
_UNSEEN = 3.0
# Samples that come this much more often than most have copies.
_MORE_OFTEN = 1.5
# What copies made on purpose look like: most samples of one class have them, next to none of another.
_COPIED_CLASS, _UNCOPIED_CLASS, _FEWEST_OF_CLASS, _FEWEST_COPIED = 0.5, 0.01, 30, 8


class Repetition(msgspec.Struct, frozen=True):
    """`share` of the training rows whose content stands in another row too; `copied` are classes whose samples were repeated
    while those of others were not, as oversampling does."""

    rows: int
    share: float
    copied: tuple[float, ...]


def repetition(training: list[Trained], loaders: dict[int, Loader]) -> Repetition:
    """How often training samples have equals, in one epoch of a loader that gives each once; else by how often they come."""
    epochs: dict[tuple[int, int | None], dict[int, Batch]] = defaultdict(dict)
    for one in training:
        if one.batch.loader is not None and not _draws_with_replacement(loaders[one.batch.loader]):
            epochs[one.batch.loader, one.batch.epoch][one.batch.seq] = one.batch
    if epochs:
        batches = list(max(epochs.values(), key=lambda held: sum(batch.size for batch in held.values())).values())
        counts = Counter(sample for batch in batches for sample in batch.fingerprints)
        rows = sum(counts.values())
        return Repetition(rows, sum(count for count in counts.values() if count > 1) / max(1, rows), _copied(batches, counts))
    counts = Counter(sample for one in training for sample in one.batch.fingerprints)
    usual = sorted(counts.values())[len(counts) // 2]
    often = sum(count for count in counts.values() if count >= _MORE_OFTEN * usual and count > 1)
    return Repetition(len(counts), often / max(1, sum(counts.values())), ())


def _draws_with_replacement(loader: Loader) -> bool:
    settings = loader.settings.get("sampler_settings") or {}
    return bool(settings.get("replacement")) or bool(loader.settings.get("weighted"))


def _copied(batches: list[Batch], counts: Counter[int]) -> tuple[float, ...]:
    """The classes of which most different samples have copies, when there is a class of which next to none has."""
    classes: dict[float, set[int]] = defaultdict(set)
    rows: Counter[float] = Counter()
    for batch in batches:
        if batch.target_kind != "class" or batch.targets is None or len(batch.targets) != len(batch.fingerprints):
            return ()
        rows.update(batch.targets)
        for sample, label in zip(batch.fingerprints, batch.targets, strict=True):
            classes[label].add(sample)
    shares = {
        label: sum(counts[sample] > 1 for sample in samples) / len(samples)
        for label, samples in classes.items()
        if rows[label] >= _FEWEST_OF_CLASS
    }
    if not any(share <= _UNCOPIED_CLASS for share in shares.values()):
        return ()
    return tuple(
        sorted(label for label, share in shares.items() if share >= _COPIED_CLASS and len(classes[label]) >= _FEWEST_COPIED)
    )


def chance_of_equal(known: Repetition, looked_at: EvaluationPass) -> float:
    """The chance that a fresh sample of the same kind equals one that was trained on: as often as training rows equal each
    other, or evaluated ones do (scaled up to the size of the training set)."""
    counts = Counter(looked_at.samples)
    rows = max(1, sum(counts.values()))
    within = sum(count for count in counts.values() if count > 1) / rows * max(1.0, known.rows / rows)
    return min(1.0, max(known.share, within) + _UNSEEN / max(1, known.rows))
