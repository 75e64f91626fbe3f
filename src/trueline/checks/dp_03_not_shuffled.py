"""Training data not shuffled

## What it checks
The order in which training samples are used: whether it is the same in every epoch, whether the class labels come in
blocks, and whether a shuffle moves the samples far enough.

## Why it hurts accuracy
Batches from sorted data hold few classes each, so every update pulls the model to the classes of the moment and it forgets
the others. With a fixed order the errors of consecutive updates repeat in every epoch instead of averaging out.

## Method
Only batches from which a backward pass came are looked at, per loader (or per model for hand-made batches, whose epochs
are found by the return of their samples). Evaluation loaders never count.

- *Label blocks*: the chi-square statistic of the label counts per batch, against its distribution under 200 permutations
  of the same labels (fixed seed). A problem at p < 1e-6 and at least twice the random unevenness, in every epoch.
- *Same order*: fingerprints of the samples (or, where augmentation changes them, the sequence of labels) equal in all
  epochs of at least three batches, when a shuffle would give that with a chance below 1e-6.
- *Small shuffle buffer*: the mean distance that samples move between epochs, against its distribution under a full shuffle
  (Spearman's footrule): a problem below a quarter of it, for streams and hand-made batches.

With a seed set, MindSpore starts each new iterator of a shuffled dataset from it again: the same random order in every epoch.
That is told, not reported.

Data whose order carries meaning is left alone: series of values or tokens without class labels, values that resemble
their neighbours (permutation test, p < 0.01), orders made by a sampler of one's own, samples that are never used twice.
Without one target per sample a fixed order is a problem only for pictures that a sequential loader reads.

## Evidence
Epochs and batches compared, the chance under shuffling, the chi-square ratio and p-value, the loader's sampler.

## Limits
Needs three batches per epoch. In a single epoch only the labels' order can be judged. A curriculum made by hand cannot be
told from a missing shuffle. A source of batches that cannot be judged leaves the item not checked,
whatever others show.

## What to do
Pass `shuffle=True` to the training DataLoader (in MindSpore to the dataset, or call its `shuffle(buffer_size)` with the size of
the data set before `batch`), or draw a new permutation of the samples at the start of each epoch.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from trueline.checks.base import Item
from trueline.checks.parts import Part, worst_of
from trueline.model import Event, Evidence, Finding, Loader
from trueline.store import Run
from trueline.views.order import Epoch, Source, training_sources
from trueline.views.order_statistics import (
    LabelOrder,
    displacement,
    label_order,
    log10_chance_of_same_order,
    neighbours_are_alike,
)
from trueline.views.words import either

item = Item(__name__, __doc__)

CONSEQUENCES = ("hp.01", "hp.02")
RANK = 40

_CHANCE = 1e-6
_LOG_CHANCE = -6.0
# The tail is an approximation: it is not worth more digits than this.
_SMALLEST_CHANCE_TOLD = 1e-12
_UNEVEN = 2.0
_BARELY_MOVED = 0.25
_ALIKE = 0.01
_FEWEST_BATCHES = 3
_FEWEST_VALUES = 32
_EPOCHS_TESTED = 5
# Equal samples are rare but happen: the share of returning samples that keep their place in an unchanged order.
_STAY_IN_PLACE = 0.9
# More classes than this in whole-number series are a vocabulary, not categories.
_MOST_CATEGORIES = 20
_KNOWN_SAMPLERS = {
    "SequentialSampler", "RandomSampler", "WeightedRandomSampler", "SubsetRandomSampler", "DistributedSampler",
    "_InfiniteConstantSampler", "ShuffleDataset",
}  # fmt: skip
_STREAM = "_InfiniteConstantSampler"
# A shuffle through a buffer, whatever the order of the source.
_BUFFER = "ShuffleDataset"
_SHARDS = "DistributedSampler"


def conclude(run: Run) -> Finding:
    sources = training_sources(run)
    if not sources:
        if run.events_of("backward"):
            return item.not_applicable("No training batches that could be followed from epoch to epoch were seen.")
        return item.not_applicable("No training was seen in this run.")
    return worst_of(Part(source.name, _conclude_source(run, source)) for source in sources)


def _conclude_source(run: Run, source: Source) -> Finding:
    long_enough = [epoch for epoch in source.epochs if len(epoch.batches) >= _FEWEST_BATCHES][:_EPOCHS_TESTED]
    if not long_enough:
        return item.not_applicable("An epoch has fewer than three batches: training on (nearly) full batches needs no shuffle.")
    if source.target_kind == "class" and not _may_be_a_series(source, long_enough):
        blocks = _label_blocks(run, source, long_enough)
        if blocks is not None:
            return blocks
    same = _same_order(long_enough)
    if same is not None:
        return _judge_same_order(run, source, long_enough, same)
    moved = _barely_moved(source, long_enough)
    return moved if moved is not None else _nothing_found(source, long_enough)


def _own_sampler(source: Source) -> str | None:
    """The name of a sampler that is none of the framework's."""
    if source.loader is None:
        return None
    batch_sampler = source.loader.settings.get("batch_sampler", "BatchSampler")
    if source.loader.sampler not in _KNOWN_SAMPLERS | {None}:
        return source.loader.sampler
    return None if batch_sampler in ("BatchSampler", "NoneType", None) else str(batch_sampler)


def _may_be_a_series(source: Source, epochs: list[Epoch]) -> bool:
    """Whether samples may be windows of a time series or a text, whose order nobody has to shuffle."""
    if not source.takes_sequences:
        return False
    labels = epochs[0].labels
    test = None if labels is None else label_order(labels, epochs[0].sizes)
    if test is None:
        return True
    first = source.fields[0]
    categories = "int" in str(first.get("dtype", "")) and test.classes <= _MOST_CATEGORIES
    return not (test.is_nearly_sorted or categories)


def _label_blocks(run: Run, source: Source, epochs: list[Epoch]) -> Finding | None:
    tests = [label_order(epoch.labels, epoch.sizes) for epoch in epochs if epoch.labels is not None]
    known = [test for test in tests if test is not None]
    blocky = [test for test in known if test.p < _CHANCE and test.ratio >= _UNEVEN]
    if not blocky or len(blocky) < len(known):
        return None
    arranged = _own_sampler(source) is not None or not source.returns
    if arranged and not all(test.is_nearly_sorted for test in blocky):
        return None
    test = blocky[0]
    how = (
        "sorted by label"
        if test.is_sorted
        else "nearly sorted by label"
        if test.is_nearly_sorted
        else "in blocks of equal labels"
    )
    return item.problem(
        f"Training samples come {how}: the batches' label counts are {test.ratio:.0f} times as uneven as in random order.",
        confidence=0.97,
        evidence=[_evidence_of(test, len(blocky)), *_evidence_of_loader(source)],
        location=source.location,
        fix=_fix(run, source, same_order=False),
        limits=_limits_of(test),
    )


def _told(p: float) -> str:
    return f"p = {p:.1g}" if p > _SMALLEST_CHANCE_TOLD else f"p < {_SMALLEST_CHANCE_TOLD:g}"


def _evidence_of(test: LabelOrder, epochs: int) -> Evidence:
    return Evidence(
        f"{test.samples} samples of {test.classes} classes in {test.windows} windows of about {test.window_size:.0f}: chi-square "
        f"of the label counts {test.ratio:.3g} times its mean under permutation ({_told(test.p)}); "
        f"{test.stretches} stretches of equal labels; in {epochs} epochs.",
        {"ratio": test.ratio, "p": test.p, "windows": test.windows, "classes": test.classes, "stretches": test.stretches},
    )


def _evidence_of_loader(source: Source) -> list[Evidence]:
    if source.loader is None:
        return [Evidence("The batches do not come from a loader.")]
    return [
        Evidence(
            f"The loader reads {source.loader.dataset} with {source.loader.sampler or 'no sampler'}.",
            {"sampler": source.loader.sampler, "dataset": source.loader.dataset},
            location=source.loader.built,
        )
    ]


def _limits_of(test: LabelOrder) -> str:
    return (
        f"Labels twice as unevenly spread over {test.windows} windows as in random order (p < 1e-6), or an equal order in two "
        "epochs, would have been seen."
    )


def _returning_samples_move(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether samples that augmentation left unchanged in both epochs stand at other places: only the labels are arranged."""
    places = {sample: place for place, sample in enumerate(other)}
    returning = [(place, places[sample]) for place, sample in enumerate(one) if sample in places]
    return sum(place == new for place, new in returning) < _STAY_IN_PLACE * len(returning)


def _same_order(epochs: list[Epoch]) -> Evidence | None:
    """What shows that all epochs use their samples in one order."""
    if len(epochs) < 2:
        return None
    samples = [epoch.samples for epoch in epochs]
    shortest = min(len(sequence) for sequence in samples)
    if len({sequence[:shortest] for sequence in samples}) == 1 and shortest:
        chance = log10_chance_of_same_order(samples[0][:shortest]) * (len(epochs) - 1)
        return _evidence_of_same("samples", epochs, chance) if chance < _LOG_CHANCE else None
    labels = [epoch.labels for epoch in epochs]
    if any(sequence is None for sequence in labels) or _returning_samples_move(samples[0], samples[1]):
        return None
    sequences = [tuple(sequence[:shortest].tolist()) for sequence in labels if sequence is not None]
    each_batch = {batch.targets for batch in epochs[0].batches}
    if len(set(sequences)) > 1 or len(each_batch) < min(_FEWEST_BATCHES, len(epochs[0].batches)):
        return None
    chance = log10_chance_of_same_order(sequences[0]) * (len(epochs) - 1)
    return _evidence_of_same("labels (the samples are augmented)", epochs, chance) if chance < _LOG_CHANCE else None


def _evidence_of_same(what: str, epochs: list[Epoch], log_chance: float) -> Evidence:
    return Evidence(
        f"{len(epochs)} epochs of {len(epochs[0].batches)} batches use their {what} in exactly the same order; "
        f"a shuffle would do that with a chance of 1e{log_chance:.0f}.",
        {"epochs": len(epochs), "batches": len(epochs[0].batches), "log10_chance": log_chance},
    )


def _judge_same_order(run: Run, source: Source, epochs: list[Epoch], same: Evidence) -> Finding:
    sampler = _own_sampler(source)
    if sampler is not None:
        return item.not_applicable(f"{sampler} gives the same order in every epoch: an order made on purpose.", evidence=[same])
    if run.framework == "mindspore" and source.loader is not None and _shuffles(source.loader):
        return _shuffled_once(source, epochs, same)
    if source.target_kind == "class" and not _may_be_a_series(source, epochs):
        return _problem_same_order(run, source, same, 0.85)
    if _depends_on_neighbours(source, epochs[0]):
        return item.not_applicable("The samples are (or look like) series, whose order carries meaning.", evidence=[same])
    if source.target_kind != "value" and not source.takes_pictures:
        return item.not_checked(
            "the order is the same in every epoch, but without one target per sample it cannot be told whether the samples "
            "depend on their neighbours, as in a time series."
        )
    if source.loader is None or source.loader.sampler != "SequentialSampler":
        return item.not_checked("the order is the same in every epoch, but no sequential loader shows that nobody chose it.")
    return _problem_same_order(run, source, same, 0.7)


def _shuffles(loader: Loader) -> bool:
    """Whether a dataset of MindSpore is shuffled, as a whole or in shards."""
    shards = loader.settings.get("sampler_settings", {}).get("shuffle", "false") if loader.sampler == _SHARDS else "false"
    return loader.sampler in ("RandomSampler", _BUFFER) or shards != "false"


def _shuffled_once(source: Source, epochs: list[Epoch], same: Evidence) -> Finding:
    """A shuffle whose result is the same in every epoch: how MindSpore behaves when a seed is set and each epoch makes a new
    iterator. The order is still a random one."""
    labels = epochs[0].labels if source.target_kind == "class" else None
    test = None if labels is None else label_order(labels, epochs[0].sizes)
    return item.no_problem(
        f"The samples are shuffled, but in the same order in all {len(epochs)} epochs: with a seed set, each new iterator of a "
        "dataset starts from it again.",
        evidence=[same, *_evidence_of_loader(source)],
        limits=(_limits_of(test) if test else "No class labels known.")
        + " For a new order in every epoch make one iterator for all of them, before the loop: "
        "`batches = data.create_tuple_iterator(num_epochs=EPOCHS)`.",
        confidence=0.6,
    )


def _depends_on_neighbours(source: Source, epoch: Epoch) -> bool:
    """Whether samples are series, or have values that resemble those of the next sample."""
    if source.takes_sequences or source.target_kind != "value":
        return source.takes_sequences
    return epoch.labels is None or len(epoch.labels) < _FEWEST_VALUES or neighbours_are_alike(epoch.labels) < _ALIKE


def _problem_same_order(run: Run, source: Source, same: Evidence, confidence: float) -> Finding:
    seed = _seed_of_every_epoch(run, source)
    evidence = [same, *_evidence_of_loader(source)]
    if seed is not None:
        evidence.append(Evidence("The seed is set anew for every epoch.", seed.detail, seed.step, seed.location))
    return item.problem(
        f"The training samples come in exactly the same order in all {same.values['epochs']} epochs.",
        confidence=confidence,
        evidence=evidence,
        location=seed.location if seed is not None else source.location,
        fix=_fix(run, source, same_order=True),
        limits="An equal order in two epochs would have been seen.",
    )


def _seed_of_every_epoch(run: Run, source: Source) -> Event | None:
    """A line that sets the same seed once per epoch, while the loader would have shuffled."""
    if source.loader is None or source.loader.sampler not in ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler"):
        return None
    others = ("numpy", "random")
    seeds = [event for event in run.events_of("seed") if event.location and event.detail.get("library") not in others]
    lines = Counter(event.location for event in seeds)
    often = [event for event in seeds if lines[event.location] >= len(source.epochs)]
    return often[0] if often else None


def _fix(run: Run, source: Source, *, same_order: bool) -> str:
    if source.loader is None:
        order = either(run, pytorch="torch.randperm(len(x))", mindspore="np.random.permutation(len(x))")
        return f"Draw a new order at the start of each epoch, `order = {order}`, and take `x[order[i:i + size]]`."
    buffer = source.loader.settings.get("shuffle_buffer")
    if buffer is not None:
        return f"Give `shuffle` a buffer as large as the data set, before `batch`: {buffer} samples are too few."
    if source.loader.sampler == _SHARDS:
        return either(
            run,
            pytorch="Call `sampler.set_epoch(epoch)` at the start of each epoch (and keep `shuffle=True` in the sampler).",
            mindspore="Give the DistributedSampler `shuffle=True`.",
        )
    if source.loader.sampler == _STREAM:
        return "Shuffle inside the dataset, through a buffer that holds many times more samples than a label block is long."
    if same_order and source.loader.sampler == "RandomSampler":
        seed = _seed_of_every_epoch(run, source)
        if seed is not None:
            return f"Set the seed once, before the first epoch: move {seed.location} out of the epoch loop."
        return "Do not give the loader a generator that starts from the same seed in every epoch."
    return either(
        run,
        pytorch="Pass `shuffle=True` to this DataLoader (and leave it off for evaluation).",
        mindspore="Give the dataset `shuffle=True`, or call `data.shuffle(buffer_size=…)` with the size of the data set before "
        "`batch`.",
    )


def _barely_moved(source: Source, epochs: list[Epoch]) -> Finding | None:
    """Samples that stay near their place from epoch to epoch, in a stream or in hand-made batches with class labels."""
    by_hand = source.loader is None or source.loader.sampler in (_STREAM, _BUFFER)
    if not by_hand or source.target_kind != "class" or len(epochs) < 2 or _may_be_a_series(source, epochs):
        return None
    moves = [displacement(before.samples, after.samples) for before, after in pairwise(epochs)]
    complete = [move for move in moves if move is not None]
    if not complete or any(move.p >= _CHANCE or move.ratio >= _BARELY_MOVED for move in complete):
        return None
    move = max(complete, key=lambda one: one.ratio)
    return item.problem(
        f"The shuffle hardly moves the samples: {move.mean:.0f} places from epoch to epoch, {move.ratio:.0%} of a full shuffle.",
        confidence=0.75,
        evidence=[
            Evidence(
                f"Mean distance of {move.mean:.1f} places, {move.ratio:.3f} of that of a full shuffle "
                f"({_told(move.p)}), over {len(complete)} pairs of epochs.",
                {"mean": move.mean, "ratio": move.ratio, "p": move.p},
            ),
            *_evidence_of_loader(source),
        ],
        location=source.location,
        fix="Shuffle all samples at the start of each epoch, or enlarge the shuffle buffer to the size of the data set.",
        limits="A mean distance below a quarter of that of a full shuffle would have been seen.",
    )


def _nothing_found(source: Source, epochs: list[Epoch]) -> Finding:
    labels = epochs[0].labels if source.target_kind == "class" else None
    test = None if labels is None else label_order(labels, epochs[0].sizes)
    if source.is_drawn and (test is None or test.p >= _CHANCE):
        return item.no_problem(
            "The samples return in ever different batches: they are drawn at random.",
            limits=_limits_of(test) if test else "Batches that return as they were would have been seen; no class labels known.",
            confidence=0.85,
        )
    if len(epochs) > 1 and source.returns:
        if test is None or test.p >= _CHANCE:
            return item.no_problem(
                f"The order of the training samples changes from epoch to epoch ({len(epochs)} compared).",
                limits=_limits_of(test) if test else "An equal order in two epochs would have been seen; no class labels known.",
                evidence=[_evidence_of(test, 1)] if test else [],
                confidence=0.95,
            )
        return item.no_problem("The order changes from epoch to epoch.", limits=_limits_of(test), confidence=0.6)
    if test is None and not source.returns:
        return item.not_applicable("No sample was used twice: what is made or met on the way has no order to shuffle.")
    if test is None:
        return item.not_checked("one epoch, without class labels: neither the order of epochs nor of labels can be compared.")
    if test.p < _CHANCE:
        return item.not_applicable("The labels come unevenly, from batches that never return or that a sampler arranged.")
    return item.no_problem(
        f"The labels of the {test.samples} samples come in random order (chi-square {test.ratio:.2f} times its random mean).",
        limits=f"{_limits_of(test)} No second epoch was seen to compare it with.",
        evidence=[_evidence_of(test, 1)],
        confidence=0.8,
    )
