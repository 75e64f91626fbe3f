"""The order in which a run used its training samples: sources of batches, and the epochs of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import Batch, Event, Loader, Location, RootCall
from trueline.store import Run

# Where single batches have samples in common they were drawn at random, rather than one epoch each.
_FEWEST_BATCHES = 3


class Epoch(msgspec.Struct, frozen=True):
    """The batches of one pass over the data, in the order in which they were used for training."""

    batches: list[Batch]

    @property
    def samples(self) -> tuple[int, ...]:
        return tuple(sample for batch in self.batches for sample in batch.fingerprints)

    @property
    def sizes(self) -> list[int]:
        return [batch.size for batch in self.batches]

    @property
    def labels(self) -> NDArray[np.float64] | None:
        if any(batch.targets is None for batch in self.batches):
            return None
        return np.array([target for batch in self.batches for target in batch.targets or ()])


class Source(msgspec.Struct, frozen=True):
    """Where training batches come from: a loader (or the loaders that one line builds), or hand-made batches of one root.

    `returns` is False for hand-made batches none of whose samples was ever used again.
    """

    loader: Loader | None
    location: Location | None
    epochs: list[Epoch]
    returns: bool

    @property
    def name(self) -> str:
        if self.loader is None:
            return f"the batches made by hand for {self.location}"
        return f"the loader of {self.loader.built or self.loader.dataset}"

    @property
    def target_kind(self) -> str | None:
        kinds = {batch.target_kind for epoch in self.epochs for batch in epoch.batches}
        return kinds.pop() if len(kinds) == 1 else None

    @property
    def fields(self) -> list[dict[str, Any]]:
        return self.epochs[0].batches[0].fields

    @property
    def is_drawn(self) -> bool:
        """Whether samples of hand-made batches return, but not epoch by epoch."""
        return self.loader is None and self.returns and len(self.epochs) == 1

    @property
    def takes_pictures(self) -> bool:
        """Whether a sample has channels, height and width."""
        return bool(self.fields) and len(self.fields[0].get("shape", [])) == 4

    @property
    def takes_sequences(self) -> bool:
        """Whether a sample is a series of vectors or of whole numbers. Square ones are taken for pictures."""
        first = self.fields[0] if self.fields else {}
        shape, dtype = first.get("shape", []), str(first.get("dtype", ""))
        return (len(shape) == 3 and shape[1] != shape[2]) or (len(shape) == 2 and shape[1] > 1 and "int" in dtype)


def training_sources(run: Run) -> list[Source]:
    """All sources whose batches were trained on. Hand-made batches count only where no loader feeds the training: beside a
    loader they are noise, or another view of what the loader gave."""
    by_loader: dict[Any, list[tuple[Batch, RootCall]]] = defaultdict(list)
    by_root: dict[int, list[tuple[Batch, RootCall]]] = defaultdict(list)
    for batch, call in _trained(run):
        if batch.loader is None:
            by_root[run.modules[call.module].root].append((batch, call))
        else:
            loader = run.loaders[batch.loader]
            by_loader[loader.built or loader.id].append((batch, call))
    if by_loader:
        return [_source_of_loader(run, used) for used in by_loader.values()]
    optimizers = {step.optimizer for step in run.steps}
    if len(optimizers) > 1:
        return []
    return [_source_of_root(used) for used in by_root.values()]


def _trained(run: Run) -> list[tuple[Batch, RootCall]]:
    """The batches from which a backward pass came, each once, with their call.

    Several batches of one source before a backward pass are an evaluation that kept gradients on, unless the last call
    before the backward pass was fed from the same source.
    """
    batches = {batch.seq: batch for batch in run.batches}
    found: dict[int, tuple[Batch, RootCall]] = {}
    waiting: list[tuple[Batch, RootCall]] = []
    calls = [call for call in run.root_calls if call.grad and not call.loss and call.module in run.modules]
    happenings: list[RootCall | Event] = [*calls, *run.events_of("backward")]
    for happening in sorted(happenings, key=lambda one: one.seq):
        if isinstance(happening, RootCall):
            if happening.batch in batches:
                waiting.append((batches[happening.batch], happening))
        elif waiting:
            last = _source_key(run, *waiting[-1])
            counts = Counter(_source_key(run, *pair) for pair in {pair[0].seq: pair for pair in waiting}.values())
            for pair in waiting:
                key = _source_key(run, *pair)
                if key == last or counts[key] == 1:
                    found.setdefault(pair[0].seq, pair)
            waiting.clear()
    return list(found.values())


def _source_key(run: Run, batch: Batch, call: RootCall) -> tuple[str, int]:
    return ("root", run.modules[call.module].root) if batch.loader is None else ("loader", batch.loader)


def _source_of_loader(run: Run, used: list[tuple[Batch, RootCall]]) -> Source:
    epochs: dict[tuple[int | None, int | None], list[Batch]] = defaultdict(list)
    for batch, _ in used:
        epochs[batch.loader, batch.epoch].append(batch)
    loader = run.loaders[used[0][0].loader or 0]
    where = loader.line_of("Shuffle") or used[0][1].location
    return Source(loader, where, [Epoch(batches) for batches in epochs.values()], returns=True)


def _source_of_root(used: list[tuple[Batch, RootCall]]) -> Source:
    batches = [batch for batch, _ in used]
    location = Counter(call.location for _, call in used).most_common(1)[0][0]
    epochs = _epochs_of(batches)
    seen = Counter(sample for batch in batches for sample in batch.fingerprints)
    return Source(None, location, epochs, returns=any(count > 1 for count in seen.values()))


def _epochs_of(batches: list[Batch]) -> list[Epoch]:
    """Find the epochs of hand-made batches: by the period in which the very same batches return, else by the return of a
    sample, when that gives epochs of one length. Otherwise all is one stream."""
    period = _period([batch.fingerprints for batch in batches])
    if period:
        return [Epoch(batches[start : start + period]) for start in range(0, len(batches), period)]
    epochs: list[list[Batch]] = [[]]
    seen: set[int] = set()
    for batch in batches:
        if not seen.isdisjoint(batch.fingerprints):
            epochs.append([])
            seen = set()
        epochs[-1].append(batch)
        seen.update(batch.fingerprints)
    lengths = {sum(batch.size for batch in epoch) for epoch in epochs[:-1]}
    several = len(epochs[0]) >= _FEWEST_BATCHES
    if several and len(lengths) == 1 and sum(batch.size for batch in epochs[-1]) <= lengths.pop():
        return [Epoch(epoch) for epoch in epochs]
    return [Epoch(batches)]


def _period(keys: Sequence[tuple[int, ...]]) -> int | None:
    """The smallest distance at which every batch is followed by itself, when it is seen at least twice over."""
    for period in range(1, len(keys) // 2 + 1):
        if keys[period] == keys[0] and all(one == other for one, other in zip(keys, keys[period:], strict=False)):
            return period
    return None
