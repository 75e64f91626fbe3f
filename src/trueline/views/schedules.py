"""What the learning-rate schedulers of a run did: how often they stepped, and where they took the rate."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import pairwise

import msgspec

from trueline.model import Event, Location
from trueline.store import Run
from trueline.views.order import training_sources


class Schedule(msgspec.Struct, frozen=True):
    """The scheduler of one class on one optimizer. `rates` are the learning rates after its steps, the one at its start first;
    `epoch` is how many optimizer steps a pass over the training data takes (None: not known). `given`: the optimizer goes through
    it by itself, one rate per step; nobody steps it."""

    optimizer: int
    type: str
    steps: list[Event]
    rates: list[float]
    optimizer_steps: list[Event]
    epoch: float | None
    given: Event | None = None

    @property
    def line(self) -> Location | None:
        if self.given is not None:
            return self.given.location
        return Counter(event.location for event in self.steps).most_common(1)[0][0]

    @property
    def epochs(self) -> float | None:
        """How many passes over the data the optimizer's steps are."""
        return None if self.epoch is None else len(self.optimizer_steps) / self.epoch

    @property
    def follows_every_step(self) -> bool:
        """Whether it was stepped about as often as the optimizer."""
        return len(self.steps) >= 0.9 * len(self.optimizer_steps) > 0

    @property
    def changes(self) -> list[int]:
        """After which of its steps the rate was another one."""
        return [place for place, (before, after) in enumerate(pairwise(self.rates), 1) if after != before]

    @property
    def turning_point(self) -> int | None:
        """The step at which a falling rate was lowest before it rose again for the first time."""
        for place, (before, after) in enumerate(pairwise(self.rates)):
            if after > before:
                return place if self.rates[place] < self.rates[0] else None
        return None

    @property
    def decay(self) -> float | None:
        """The factor by which the rate falls at every step; None when it is not the same at all of them."""
        factors = [after / before for before, after in pairwise(self.rates) if before > 0]
        if not factors or max(factors) - min(factors) > 1e-9:
            return None
        return factors[0]


def schedules_of(run: Run) -> list[Schedule]:
    """All schedulers that were stepped, with the optimizers that they belong to."""
    grouped: dict[tuple[int, str], list[Event]] = {}
    for event in run.events_of("scheduler_step"):
        if event.subject is not None and event.detail.get("type"):
            grouped.setdefault((event.subject, str(event.detail["type"])), []).append(event)
    epoch = steps_per_epoch(run)
    found = []
    for (optimizer, kind), events in grouped.items():
        stepped = [event for event in run.events_of("optimizer_step") if event.subject == optimizer]
        if events[0].detail.get("by_optimizer"):
            if stepped:
                found.append(Schedule(optimizer, kind, stepped, _rates_at(run, stepped), stepped, epoch, events[0]))
            continue
        steps = [event for event in events if not event.detail.get("initial")]
        if not steps:
            continue
        rates = [event.value for event in events if event.value is not None]
        found.append(Schedule(optimizer, kind, steps, rates, stepped, epoch))
    return found


def _rates_at(run: Run, stepped: list[Event]) -> list[float]:
    """The rate of an optimizer's first group at each of its steps: recorded when it changes."""
    known = [
        (one.step, float(one.value))
        for one in run.hyperparameters
        if one.optimizer == stepped[0].subject and one.group == 0 and one.name == "lr" and isinstance(one.value, int | float)
    ]
    places = [bisect_right(known, event.step, key=lambda one: one[0]) - 1 for event in stepped]
    return [known[place][1] for place in places if place >= 0]


def steps_per_epoch(run: Run) -> float | None:
    """How many optimizer steps one pass over the training data takes; None where passes cannot be told."""
    sources = [source for source in training_sources(run) if len(source.epochs) > 1]
    lengths = sorted(len(epoch.batches) for source in sources for epoch in source.epochs[:-1])
    passes = sorted(step.backwards for step in run.steps if step.optimizer is not None and step.backwards)
    if not lengths or not passes:
        return None
    return lengths[len(lengths) // 2] / passes[len(passes) // 2]
