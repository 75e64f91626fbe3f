"""What came before what: lookups in the order of a run's events that stay cheap on long runs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from trueline.model import Event
from trueline.store import Run


class EventOrder:
    """The events of a few kinds, found by their place in the run."""

    def __init__(self, run: Run, *kinds: str) -> None:
        self._events: dict[str, list[Event]] = {kind: [] for kind in kinds}
        for event in run.events_of(*kinds):
            self._events[event.kind].append(event)
        self._seqs = {kind: [event.seq for event in events] for kind, events in self._events.items()}

    def last(self, kind: str, before: int) -> Event | None:
        """The last event of a kind before a moment."""
        position = bisect_left(self._seqs[kind], before)
        return self._events[kind][position - 1] if position else None

    def between(self, kind: str, start: int, end: int) -> list[Event]:
        """The events of a kind after `start` and before `end`."""
        seqs = self._seqs[kind]
        return self._events[kind][bisect_right(seqs, start) : bisect_left(seqs, end)]

    def any_between(self, kind: str, start: int, end: int) -> bool:
        seqs = self._seqs[kind]
        return bisect_right(seqs, start) < bisect_left(seqs, end)
