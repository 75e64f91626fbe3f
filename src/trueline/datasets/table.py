"""A table of samples, in whatever format it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trueline.datasets.columns import Chunk
from trueline.reading import reading


@dataclass
class Table:
    """`read` starts a pass over the rows; it can be called again. `label` is the field that the format itself says is the
    label, such as the folder of an image. `notes` are what a reader saw on its way and the user should know."""

    name: str
    read: Callable[[], Iterator[Chunk]]
    files: list[Path] = field(default_factory=list)
    label: str | None = None
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What is wrong with the rows themselves, such as lines with too few fields."""
    row_word: str = "row"


def guarded(path: Path, read: Callable[[], Iterator[Chunk]]) -> Callable[[], Iterator[Chunk]]:
    """Passes over the rows of a file in which whatever goes wrong is one message that names the file."""

    def chunks() -> Iterator[Chunk]:
        with reading(path):
            yield from read()

    return chunks
