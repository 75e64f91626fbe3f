"""What is shown on the terminal while a script runs: never anything that could fall into its own output."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.text import Text

from trueline.report.console import StatusLine, output_console
from trueline.report.words import many, number
from trueline.store.format import journal_file
from trueline.store.journal import read_frames


class Progress:
    """A line on standard error when recording starts, and step and loss while it goes on, if that is a terminal.

    Where the script prints to the same terminal, step and loss go to the terminal's title: a line that redraws itself
    would garble the script's output. Where it does not, they are a line of their own.
    """

    def __init__(self, command: list[str], directory: Path, words: str | None = None) -> None:
        self._line = StatusLine()
        self._steps = StepReader(directory)
        self._words = words or f"Recording {shlex.join(command)} (Ctrl-C ends the script, not the diagnosis)"

    def __enter__(self) -> Self:
        if self._line.is_shown:
            output_console(stderr=True).print(Text(self._words, style="dim"), soft_wrap=True)
            self._line.begin()
        return self

    def follow(self, directory: Path) -> None:
        """Show how far the record in this directory is."""
        if not self._steps.is_of(directory):
            self._steps = StepReader(directory)
        self.update()

    def update(self) -> None:
        if self._line.is_shown:
            seen = self._steps.last_step()
            self._line.show("starting" if seen is None else f"{many(seen[0], 'step')}, loss {number(seen[1])}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._line.end()


class StepReader:
    """Follows the journal of a run that is being recorded."""

    def __init__(self, directory: Path) -> None:
        self._path = journal_file(directory, 0)
        self._place = 0
        self._last: tuple[int, float | None] | None = None

    def is_of(self, directory: Path) -> bool:
        return self._path == journal_file(directory, 0)

    def last_step(self) -> tuple[int, float | None] | None:
        """How many steps the run's first rank has recorded, and the loss of the last; None as long as there is nothing."""
        try:
            for place, rows in read_frames(self._path, self._place):
                self._place = place
                for row in rows.get("step", ()):
                    self._last = (row[0] + 1, None if row[3] is None else float(row[3]))
        except OSError:
            # Not there yet, or folded already.
            return self._last
        return self._last
