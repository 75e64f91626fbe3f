"""Data sharded wrongly over ranks

## What it checks
Whether the ranks of a distributed run divide the training data between them: no sample on two ranks in one epoch, not the
same batches everywhere, shares of equal size, a sampler that knows its rank. Within one process: whether the workers of a
loader divide a stream between them.

## Why it hurts accuracy
Ranks that are given the same samples compute the same gradient several times: the run costs as much as on many ranks and
learns as on one, or sees some samples often and others never. Shares of different size weigh samples differently.

## Method
Every sample has a fingerprint of its content. For each epoch the ranks' fingerprints are put side by side:

- *Same batches*: nine in ten batches hold the same samples on all ranks.
- *Whole set on every rank*: the ranks' epochs hold the same samples in different orders.
- *Overlap*: more samples on two ranks than padding to full batches explains (world size times batch size, and 5 % of a
  share), where shares are fixed or a DistributedSampler promises a partition. Shares that are drawn at random anew in every
  epoch overlap by chance and are left alone, unless each is exactly the world size's part of all samples.
- *Sampler*: a DistributedSampler that was told another rank or world size than that of the run.
- *Unequal shares*: sizes that differ by more than a batch and 10 %, where gradients are averaged at each step and nothing
  handles the uneven end.
- *Workers*: in an epoch of a stream read by w workers every sample comes a multiple of w times (at least 20 samples).

Data may hold copies of a sample: a fair division puts, for every other rank, as many pairs of copies on different ranks as on
the same one, and up to one and a half times that is no overlap. Ranks that train no common model (no group, a split model,
nothing that averages) are not applicable.

## Evidence
Samples per rank and epoch, how many are common, share of identical batches, the sampler and its settings.

## Limits
Random augmentation before the batch is made changes fingerprints: then only the sampler's settings can be judged. An overlap
smaller than padding cannot be told from it. What no rank ever reads is seen only through a DistributedSampler's settings.

## What to do
Give the loader a `DistributedSampler(dataset)` (and `shuffle` to the sampler), or slice `[rank::world_size]` of one order
that is the same on all ranks: sorted files, one seed. In an IterableDataset, divide by `get_worker_info()` and by rank.
In MindSpore give the dataset `num_shards=get_group_size(), shard_id=get_rank()`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing

from trueline.checks.base import Item
from trueline.checks.parts import Part, worst_of
from trueline.model import Evidence, Finding, Loader, Location
from trueline.store import Run
from trueline.views.ranks import WRAPPER, Ranks, unrecorded_ranks
from trueline.views.shards import SAMPLER, Sharding, shardings

item = Item(__name__, __doc__)

CONSEQUENCES = ("hp.02", "hp.03", "tr.05")
RANK = 32

_SAME_BATCHES = 0.9
_WHOLE = 0.95
_OVERLAP = 0.05
_UNEQUAL = 0.1
_FEWEST_SAMPLES = 20
_STREAM = "_InfiniteConstantSampler"
_DRAWING = {"WeightedRandomSampler"}


def conclude(run: Run) -> Finding:
    workers = _workers_repeat(run)
    if workers is not None:
        return workers
    if len(run.ranks) < 2:
        if (missing := unrecorded_ranks(run)) is not None:
            return item.not_checked(missing)
        return item.not_applicable("One process trains, and no stream is divided between workers.")
    with closing(Ranks(run)) as ranks:
        return _conclude(ranks)


def _conclude(ranks: Ranks) -> Finding:
    if not ranks.trains or not ranks.form_a_group:
        return item.not_applicable("The processes do not train one model together.")
    if ranks.split_the_model:
        return item.not_applicable("The model is split over the ranks, which then may well see the same data.")
    wrong = _sampler_told_wrong(ranks)
    if wrong is not None:
        return wrong
    promised = any(loader.sampler == SAMPLER for run in ranks.runs.values() for loader in run.loaders.values())
    if not ranks.averages and not promised:
        return item.not_checked(
            "nothing averages gradients or weights over the ranks: it is not known whether they share the data."
        )
    found = shardings(ranks)
    if not found:
        return item.not_checked("no training batches that could be followed on all ranks were seen.")
    return worst_of(Part(sharding.source.name, _judge(ranks, sharding)) for sharding in found)


def _judge(ranks: Ranks, sharding: Sharding) -> Finding:
    batches = [len(shard.batches) for shards in sharding.epochs for shard in shards.values()]
    if max(batches) < 2:
        return item.not_checked("each epoch is a single batch on every rank: too little to tell a division of the data.")
    returns = sharding.return_between_epochs()
    made_up = sharding.source.loader is None and not sharding.source.returns
    same = sharding.same_batches()
    if same >= _SAME_BATCHES:
        if made_up:
            return item.not_checked("all ranks are given the same samples, which are made up on the way and never used again.")
        return _problem_same(ranks, sharding, same)
    if sharding.source.is_drawn:
        return item.not_applicable("Every rank draws its samples at random, with replacement: they overlap as chance has it.")
    if made_up:
        return item.not_checked("the samples are made up on the way: there is no set of data to be divided.")
    shares = [sharding.common(epoch) for epoch in range(len(sharding.epochs))]
    overlap = [common for common, _ in shares]
    if all(common > max(sharding.padding, _OVERLAP * size) for common, size in shares):
        finding = _overlapping(ranks, sharding, shares)
        if finding is not None:
            return finding
    unequal = _unequal(ranks, sharding)
    if unequal is not None:
        return unequal
    if returns is False and not any(overlap) and sharding.source.loader is not None and sharding.source.loader.sampler != SAMPLER:
        return item.not_checked("the samples are changed at random before they reach the model and cannot be recognised.")
    return item.no_problem(
        f"The {len(sharding.sources)} ranks use different samples in each of {len(shares)} epochs (at most "
        f"{max(overlap)} in common).",
        limits=_limits(sharding, shares),
        confidence=0.9,
        evidence=[_counts(sharding)],
    )


def _overlapping(ranks: Ranks, sharding: Sharding, shares: list[tuple[int, int]]) -> Finding | None:
    loader = sharding.source.loader
    if all(common >= _WHOLE * size for common, size in shares):
        return _problem(
            ranks, sharding, shares, 0.85,
            f"Every rank goes through the same samples: {shares[0][0]} of {shares[0][1]} per epoch are used on "
            "more than one rank.",
        )  # fmt: skip
    what = (
        f"The ranks' shares overlap: {shares[0][0]} samples per epoch are used on more than one rank, of {shares[0][1]} per rank."
    )
    if loader is not None and loader.sampler == SAMPLER:
        return _problem(ranks, sharding, shares, 0.95, what)
    if loader is not None and (loader.sampler in _DRAWING or loader.settings.get("sampler_settings", {}).get("replacement")):
        return None
    if sharding.are_fixed() and (len(sharding.epochs) > 1 or loader is None or loader.sampler != "RandomSampler"):
        return _problem(ranks, sharding, shares, 0.85, what)
    if loader is not None and loader.sampler == "RandomSampler":
        return item.not_checked("the ranks draw parts of the data at random, each for itself; they overlap as chance has it.")
    exact = abs(sharding.epochs[0][ranks.first.rank].size * len(sharding.sources) - sharding.union) <= sharding.padding
    if exact and len(sharding.epochs) > 1:
        return _problem(ranks, sharding, shares, 0.75, what)
    return item.not_checked("the ranks draw parts of the data at random, each for itself; they overlap as chance has it.")


def _problem(ranks: Ranks, sharding: Sharding, shares: list[tuple[int, int]], confidence: float, summary: str) -> Finding:
    values = {"common": [common for common, _ in shares], "per_rank": [size for _, size in shares]}
    files = _files_of_several(ranks)
    return item.problem(
        summary,
        confidence=confidence,
        evidence=[
            Evidence(f"Samples on more than one rank, by epoch: {', '.join(map(str, values['common']))}.", values),
            _counts(sharding),
            *_evidence_of_loader(sharding),
            *files,
        ],
        location=_line(ranks, sharding),
        fix=_fix(ranks, sharding),
        limits=_limits(sharding, shares),
    )


def _limits(sharding: Sharding, shares: list[tuple[int, int]]) -> str:
    fewest = max(sharding.padding, int(_OVERLAP * shares[0][1]))
    return f"More than {fewest} common samples in every epoch would have been seen."


def _problem_same(ranks: Ranks, sharding: Sharding, same: float) -> Finding:
    return item.problem(
        f"All {len(sharding.sources)} ranks are given the same batches: the data is not divided between them.",
        confidence=0.95,
        evidence=[
            Evidence(f"{same:.0%} of the batches hold the same samples on every rank.", {"same": same}),
            _counts(sharding),
            *_evidence_of_loader(sharding),
        ],
        location=_line(ranks, sharding),
        fix=_fix(ranks, sharding),
        limits="Nine in ten batches with the same samples on all ranks would have been seen.",
    )


def _unequal(ranks: Ranks, sharding: Sharding) -> Finding | None:
    per_step = ranks.any_of(WRAPPER) or any(ranks.reductions_of("gradient").values())
    if not per_step or ranks.any_of("join") or len(sharding.epochs) < 2:
        return None
    sizes = [[shard.size for shard in shards.values()] for shards in sharding.epochs]
    largest = sharding.padding // len(sharding.sources)
    if not all(max(row) - min(row) > max(largest, _UNEQUAL * max(row)) for row in sizes[:-1]):
        return None
    return item.problem(
        f"The ranks' shares are of different size: {min(sizes[0])} to {max(sizes[0])} samples per epoch.",
        confidence=0.7,
        evidence=[_counts(sharding), *_evidence_of_loader(sharding)],
        location=_line(ranks, sharding),
        fix="Give every rank equally many samples, or use the context `Join` so that the averages stay right at the uneven end.",
        limits=f"Shares that differ by more than {max(largest, int(_UNEQUAL * max(sizes[0])))} samples would have been seen.",
    )


def _sampler_told_wrong(ranks: Ranks) -> Finding | None:
    told: dict[Location | None, dict[int, tuple[int, int, Loader]]] = {}
    for rank, run in ranks.runs.items():
        for loader in run.loaders.values():
            settings = loader.settings.get("sampler_settings", {})
            if loader.sampler == SAMPLER and {"rank", "num_replicas"} <= set(settings):
                told.setdefault(loader.built, {})[rank] = (settings["num_replicas"], settings["rank"], loader)
    for samplers in told.values():
        if len(samplers) < len(ranks.runs):
            continue
        replicas = {count for count, _, _ in samplers.values()}
        places = [place for _, place, _ in samplers.values()]
        # A loader that each rank reads as a whole (evaluation) is told one replica; more of them must be the run's.
        if not _trains_from(ranks, [loader.id for _, _, loader in samplers.values()]):
            continue
        if replicas == {len(ranks.runs)} and len(set(places)) == len(places):
            continue
        shown = ", ".join(f"rank {rank}: {place} of {count}" for rank, (count, place, _) in samplers.items())
        line = _sampler_line(ranks) or next(iter(samplers.values()))[2].built
        return item.problem(
            f"The DistributedSampler was told another place than the rank has: {shown}.",
            confidence=0.95,
            evidence=[Evidence(f"Place and number of replicas that the samplers were given: {shown}.", {}, None, line)],
            location=line,
            fix=ranks.words.shard
            if ranks.first.framework == "mindspore"
            else "Leave `num_replicas` and `rank` out (the sampler asks the process group), or pass the group's own.",
            limits="A sampler with another rank or world size than the run's would have been seen.",
        )
    return None


def _trains_from(ranks: Ranks, loaders: list[int]) -> bool:
    used = {
        source.loader.id for sharding in shardings(ranks) for source in sharding.sources.values() if source.loader is not None
    }
    return not used.isdisjoint(loaders)


def _workers_repeat(run: Run) -> Finding | None:
    """A stream that every worker reads as a whole."""
    for loader in run.loaders.values():
        workers = loader.settings.get("workers") or 0
        if loader.sampler != _STREAM or workers < 2:
            continue
        epochs: dict[int | None, Counter[int]] = {}
        for batch in run.batches:
            if batch.loader == loader.id:
                epochs.setdefault(batch.epoch, Counter()).update(batch.fingerprints)
        first = epochs.get(0, Counter())
        if len(first) < _FEWEST_SAMPLES or any(count % workers for count in first.values()):
            continue
        return item.problem(
            f"Each of the loader's {workers} workers reads the whole stream: every sample comes "
            f"{min(first.values())} times per epoch.",
            confidence=0.9,
            evidence=[
                Evidence(
                    f"{len(first)} different samples, each {min(first.values())} to {max(first.values())} times "
                    "in the first epoch.",
                    {"workers": workers, "samples": len(first)},
                    None,
                    loader.built,
                )
            ],
            location=loader.built,
            fix="Divide the stream in the dataset's `__iter__` by `torch.utils.data.get_worker_info()`.",
            limits=f"A stream whose every sample comes a multiple of {workers} times would have been seen; one that repeats its "
            "samples that often on purpose looks the same.",
        )
    return None


def _line(ranks: Ranks, sharding: Sharding) -> Location | None:
    loader = sharding.source.loader
    if loader is not None and loader.sampler == SAMPLER:
        return _sampler_line(ranks) or sharding.source.location
    return sharding.source.location


def _sampler_line(ranks: Ranks) -> Location | None:
    built = [event.location for event in ranks.operations(SAMPLER)[ranks.first.rank] if event.location is not None]
    return built[0] if built else None


def _counts(sharding: Sharding) -> Evidence:
    sizes = {rank: [shards[rank].size for shards in sharding.epochs] for rank in sharding.sources}
    shown = "; ".join(f"rank {rank}: {', '.join(map(str, counts))}" for rank, counts in sizes.items())
    return Evidence(f"Samples used per epoch: {shown}.", {"samples": {str(rank): counts for rank, counts in sizes.items()}})


def _evidence_of_loader(sharding: Sharding) -> list[Evidence]:
    loader = sharding.source.loader
    if loader is None:
        return [Evidence("The batches do not come from a loader.")]
    return [Evidence(f"The loader reads {loader.dataset} with {loader.sampler}.", {"length": loader.length}, None, loader.built)]


def _files_of_several(ranks: Ranks) -> list[Evidence]:
    """Files that more than one rank read, where each read a part of them."""
    opened = {rank: {event.detail.get("path") for event in run.events_of("file_opened")} for rank, run in ranks.runs.items()}
    common = set.intersection(*opened.values())
    everything = set.union(*opened.values())
    if not common or len(common) == len(everything):
        return []
    names = sorted(str(path).rpartition("/")[2] for path in common)
    return [
        Evidence(
            f"{len(common)} of {len(everything)} files were read by all ranks: {', '.join(names[:5])}.", {"files": names[:20]}
        )
    ]


def _fix(ranks: Ranks, sharding: Sharding) -> str:
    loader = sharding.source.loader
    if loader is None:
        return (
            "Take `order[rank::world_size]` of one order of all samples that is the same on every rank (same seed, sorted files)."
        )
    if loader.sampler == SAMPLER:
        return "Give the DistributedSampler the same seed on every rank; it must draw one order that all ranks divide."
    return ranks.words.shard
