"""Two recordings of the same script side by side: which of the things that make a run differ, and from which step on."""

from __future__ import annotations

import math
from functools import cached_property

from trueline.model import Batch, Event
from trueline.store import Run

# A sum in another order changes a loss by a few units in the last place of float32.
ROUNDING = 1e-5


class Repetition:
    """A run and its rerun, compared up to the last step that both have."""

    def __init__(self, first: Run, second: Run) -> None:
        self.first = first
        self.second = second
        self.steps = min(len(first.steps), len(second.steps))

    @cached_property
    def seeds(self) -> list[tuple[Event, Event]]:
        """The calls that seed a stream before training, in pairs."""
        one, other = ([event for event in run.events_of("seed") if event.step == 0] for run in (self.first, self.second))
        return list(zip(one, other, strict=False))

    @property
    def differing_seed(self) -> Event | None:
        for one, other in self.seeds:
            if one.location == other.location and one.detail.get("seed") != other.detail.get("seed"):
                return one
        return None

    @property
    def network_differs(self) -> bool:
        shapes = [
            [
                (module.path, module.type)
                for module in run.modules.values()
                if module.called is not None or module.id == module.root
            ]
            for run in (self.first, self.second)
        ]
        return shapes[0][: len(shapes[1])] != shapes[1][: len(shapes[0])]

    @cached_property
    def differing_weights(self) -> list[str]:
        """Parameters whose content before the first step is not the same."""
        digests = [
            {
                (parameter.path, parameter.root): shots[0].digest
                for parameter in run.parameters.values()
                if (shots := run.snapshots.get(parameter.id)) and shots[0].step == -1
            }
            for run in (self.first, self.second)
        ]
        return [path for (path, root), digest in digests[0].items() if digests[1].get((path, root), digest) != digest]

    @cached_property
    def differing_batch(self) -> tuple[Batch, Batch] | None:
        """The first batch whose samples or targets are not the same in both."""
        one, other = ([batch for batch in run.batches if batch.step < self.steps] for run in (self.first, self.second))
        for first, second in zip(one, other, strict=False):
            if first.fingerprints != second.fingerprints or first.targets != second.targets or first.size != second.size:
                return first, second
        return None

    @property
    def order_differs_only(self) -> bool:
        """Whether the samples are the same and only their order changed, as far as the compared steps show."""
        if self.differing_batch is None:
            return False
        sets = [{sample for batch in run.batches if batch.step < self.steps for sample in batch.fingerprints}
                for run in (self.first, self.second)]  # fmt: skip
        return len(sets[0] & sets[1]) > 0.5 * min(len(sets[0]), len(sets[1]))

    @property
    def differing_hyperparameter(self) -> tuple[int, str] | None:
        """The optimizer and name of the first setting that differs."""
        values = [
            {
                (entry.step, entry.optimizer, entry.group, entry.name): entry.value
                for entry in run.hyperparameters
                if entry.step < self.steps
            }
            for run in (self.first, self.second)
        ]
        for key, value in values[0].items():
            if values[1].get(key, value) != value:
                return key[1], key[3]
        return None

    @cached_property
    def differing_loss(self) -> tuple[int, float] | None:
        """The first step whose loss is not the same, and the difference relative to its size."""
        for one, other in zip(self.first.steps[: self.steps], self.second.steps, strict=False):
            if one.loss is None or other.loss is None or one.loss == other.loss:
                continue
            if math.isnan(one.loss) and math.isnan(other.loss):
                continue
            size = max(abs(one.loss), abs(other.loss))
            return one.id, abs(one.loss - other.loss) / size if math.isfinite(size) and size else math.inf
        return None
