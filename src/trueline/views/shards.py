"""What each rank of a run was trained on, epoch by epoch, and what the ranks have in common."""

from __future__ import annotations

from collections import Counter

import msgspec

from trueline.views.order import Source, training_sources
from trueline.views.ranks import Ranks

SAMPLER = "DistributedSampler"
_MOST_EPOCHS = 5
# Pairs of equal samples on different ranks against pairs on the same rank: about one for each other rank by chance.
_FAIR = 1.5


class Shard(msgspec.Struct, frozen=True):
    """The samples of one epoch on one rank: the batches in their order, and each sample's count."""

    batches: list[tuple[int, ...]]
    counts: dict[int, int]

    @property
    def size(self) -> int:
        return sum(map(len, self.batches))


class Sharding(msgspec.Struct, frozen=True):
    """One source of training batches on all ranks: `sources` and, epoch by epoch, `epochs[e][rank]`."""

    sources: dict[int, Source]
    epochs: list[dict[int, Shard]]

    @property
    def source(self) -> Source:
        return next(iter(self.sources.values()))

    @property
    def padding(self) -> int:
        """How many samples may be used twice to give every rank full and equally many batches."""
        largest = max(len(batch) for shards in self.epochs for shard in shards.values() for batch in shard.batches)
        return len(self.sources) * largest

    def same_batches(self) -> float:
        """The share of batches that are the very same samples on every rank."""
        same = total = 0
        for shards in self.epochs:
            for batches in zip(*(shard.batches for shard in shards.values()), strict=False):
                total += 1
                same += len({tuple(sorted(batch)) for batch in batches}) == 1
        return same / total if total else 0.0

    def common(self, epoch: int) -> tuple[int, int]:
        """How many samples of an epoch more than one rank used, and the size of the smallest rank's share.

        Where data holds copies, a fair division puts as many pairs of them on different ranks, for each other rank, as on the
        same one. What a fair division explains is no overlap.
        """
        shards = list(self.epochs[epoch].values())
        within = sum(count * (count - 1) // 2 for shard in shards for count in shard.counts.values())
        across = 0
        seen: Counter[int] = Counter()
        for shard in shards:
            across += sum(count * seen[sample] for sample, count in shard.counts.items())
            seen.update(shard.counts)
        held = Counter(sample for shard in shards for sample in shard.counts)
        common = sum(count > 1 for count in held.values())
        if within and across <= _FAIR * (len(shards) - 1) * within:
            common = 0
        return common, min(len(shard.counts) for shard in shards)

    def are_fixed(self) -> bool:
        """Whether each rank uses the same samples in every epoch; so taken where there is only one."""
        for rank in self.sources:
            sets = [set(shards[rank].counts) for shards in self.epochs]
            if any(len(one ^ sets[0]) > 0.02 * len(sets[0]) for one in sets[1:]):
                return False
        return True

    def return_between_epochs(self) -> bool | None:
        """Whether samples come again in later epochs, on any rank; None with a single epoch."""
        if len(self.epochs) < 2:
            return None
        seen = [{sample for shard in shards.values() for sample in shard.counts} for shards in self.epochs]
        return any(len(seen[0] & later) >= 0.1 * len(seen[0]) for later in seen[1:])

    @property
    def union(self) -> int:
        return len({sample for shards in self.epochs for shard in shards.values() for sample in shard.counts})


def shardings(ranks: Ranks) -> list[Sharding]:
    """The training sources that all ranks have, matched by the line that builds them, else by their order."""
    by_rank = {rank: training_sources(run) for rank, run in ranks.runs.items()}
    if not all(by_rank.values()):
        return []
    found = []
    for place, source in enumerate(by_rank[ranks.first.rank]):
        matched = {}
        for rank, sources in by_rank.items():
            same = [other for other in sources if other.location == source.location]
            if same:
                matched[rank] = same[0]
            elif place < len(sources):
                matched[rank] = sources[place]
        if len(matched) < len(by_rank):
            continue
        length = min(_MOST_EPOCHS, *(len(one.epochs) for one in matched.values()))
        epochs = [{rank: _shard(one, number) for rank, one in matched.items()} for number in range(length)]
        if epochs and all(shard.counts for shards in epochs for shard in shards.values()):
            found.append(Sharding(matched, epochs))
    return found


def _shard(source: Source, number: int) -> Shard:
    batches = [batch.fingerprints for batch in source.epochs[number].batches if batch.fingerprints]
    return Shard(batches, dict(Counter(sample for batch in batches for sample in batch)))


def have_shards(ranks: Ranks) -> bool:
    """Whether the ranks plainly share one set of data between them: by a sampler made for it, or by parts of equal size that
    have nothing in common and are used again and again."""
    if any(loader.sampler == SAMPLER for run in ranks.runs.values() for loader in run.loaders.values()):
        return True
    for sharding in shardings(ranks):
        common, _ = sharding.common(0)
        sizes = [shard.size for shard in sharding.epochs[0].values()]
        if (
            not common
            and sharding.return_between_epochs()
            and sharding.are_fixed()
            and max(sizes) - min(sizes) <= sharding.padding
        ):
            return True
    return False
