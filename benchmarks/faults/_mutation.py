"""What a mutation is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.faults._source import Edit, Source


@dataclass(frozen=True)
class Planting:
    """One way to plant a fault into one script: the edits, and the lines that count as its place (none: no place is expected)."""

    edits: list[Edit]
    lines: tuple[int, ...] = ()
    added: int = 0
    """Lines that the edits add, where the fault only looks real on a line of its own; `lines` are those of the planted script."""


Places = Callable[[Source], list[Planting]]


@dataclass(frozen=True)
class Mutation:
    item: str
    name: str
    title: str
    places: Places
    """Where the fault can be planted; empty when the mutation does not apply to the script."""


MUTATIONS: list[Mutation] = []


def mutation(item: str, title: str) -> Callable[[Places], Places]:
    """Register a function under its own name as a mutation that makes this item's fault."""

    def register(places: Places) -> Places:
        MUTATIONS.append(Mutation(item, places.__name__, title, places))
        return places

    return register
