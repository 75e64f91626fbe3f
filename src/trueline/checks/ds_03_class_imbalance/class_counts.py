"""How many samples each class has in training, and how well each is recognised."""

from __future__ import annotations

from collections import Counter
from math import sqrt

import msgspec

from trueline.store import Run
from trueline.views.order import Source, training_sources


class ClassCounts(msgspec.Struct, frozen=True):
    """Samples per class in one pass over the training data, as the model saw them: what a sampler repeats counts again.
    `distinct` are the different samples of all passes."""

    source: Source
    seen: dict[int, int]
    distinct: dict[int, int]

    @property
    def samples(self) -> int:
        return sum(self.seen.values())

    @property
    def largest(self) -> int:
        return max(self.seen.values())

    @property
    def rarest_share(self) -> float:
        return min(self.seen.values()) / self.samples

    @property
    def spread(self) -> float:
        """The standard deviation of the counts over their mean."""
        counts = list(self.seen.values())
        mean = sum(counts) / len(counts)
        return sqrt(sum((count - mean) ** 2 for count in counts) / len(counts)) / mean

    def rare(self, times: float) -> set[int]:
        """The classes that the largest one outnumbers by so many times."""
        return {label for label, count in self.seen.items() if times * count <= self.largest}


def class_counts(run: Run) -> ClassCounts | None:
    """Of the training source with class labels that most samples come from; None where there is none."""
    found: list[ClassCounts] = []
    for source in training_sources(run):
        if source.target_kind != "class" or not source.epochs:
            continue
        # An epoch that was cut short, or the whole stream where epochs cannot be told.
        longest = max(source.epochs, key=lambda epoch: sum(epoch.sizes))
        if longest.labels is None:
            continue
        seen = Counter(int(label) for label in longest.labels)
        labels = {
            sample: int(target)
            for epoch in source.epochs
            for batch in epoch.batches
            for sample, target in zip(batch.fingerprints, batch.targets or (), strict=False)
        }
        distinct = Counter(labels.values())
        if source.loader is None:
            # Hand-made batches may draw with repetition, epoch after epoch.
            seen = distinct if source.returns else seen
        if len(seen) > 1:
            found.append(ClassCounts(source, dict(sorted(seen.items())), dict(sorted(distinct.items()))))
    return max(found, key=lambda counts: counts.samples, default=None)


class Recall(msgspec.Struct, frozen=True):
    """Hits and samples per class, each sample as it was judged last."""

    hits: dict[int, int]
    samples: dict[int, int]

    def of(self, labels: set[int]) -> tuple[int, int]:
        return sum(self.hits.get(label, 0) for label in labels), sum(self.samples.get(label, 0) for label in labels)

    @property
    def total(self) -> int:
        return sum(self.samples.values())


def recall(run: Run, *, training: bool) -> Recall | None:
    """How often each class was recognised, in evaluation or on the training samples themselves (in the last quarter of steps)."""
    batches = {batch.seq: batch for batch in run.batches}
    late = run.steps[-1].id * 3 // 4 if run.steps else 0
    last: dict[int, tuple[int, int]] = {}
    for scores in run.scores:
        batch = batches.get(scores.batch)
        if scores.training is not training or batch is None or len(batch.fingerprints) != len(scores.labels):
            continue
        if batch.targets is not None and tuple(map(int, batch.targets)) != scores.labels:
            continue
        if not training or scores.step >= late:
            for sample, label, predicted in zip(batch.fingerprints, scores.labels, scores.predicted, strict=True):
                last[sample] = (label, predicted)
    if not last:
        return None
    hits = Counter(label for label, predicted in last.values() if label == predicted)
    return Recall(dict(hits), dict(Counter(label for label, _ in last.values())))
