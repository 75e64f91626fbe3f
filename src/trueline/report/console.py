"""The one way from a command to the terminal.

What is printed holds names and messages of records, files and scripts. Whatever they are, they cannot give orders to the
terminal, look like a line of the report, or turn into a link: all text is shown by `printable`, and none of it is markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

from trueline.output import printable

_WIDEST = 110
_WIDTH_OF_A_FILE = 100
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;0t", "\x1b[23;0t"
_ERASE_LINE = "\r\x1b[K"


class _SafeConsole(Console):
    """Whatever is rendered comes through `render`, tables and panels with all that is in them. A line break is part of a
    name too: text of several lines is printed line by line, or as a group."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        return super().render(_shown(renderable) if isinstance(renderable, Text) else renderable, options)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)


def _shown(text: Text) -> Text:
    """The same in letters that can be seen; its styles stay where they were."""
    if printable(text.plain) == text.plain:
        return text
    letters = [printable(letter) for letter in text.plain]
    places = [0, *accumulate(map(len, letters))]
    shown = text.blank_copy("".join(letters))
    shown.spans = [Span(places[span.start], places[min(span.end, len(letters))], span.style) for span in text.spans]
    return shown


def output_console(*, stderr: bool = False, own_pages: bool = False) -> Console:
    """A console as wide as the terminal, up to where lines get hard to read; plain text when it is not a terminal.

    Nothing is highlighted by guess: colour in a report always means something. `own_pages`: only what Trueline itself says
    is printed, in lines of its own.
    """
    kind = Console if own_pages else _SafeConsole
    console = kind(stderr=stderr, highlight=False, emoji=False, markup=False)
    known = console.is_terminal or "COLUMNS" in os.environ
    console.width = min(console.width, _WIDEST) if known else _WIDTH_OF_A_FILE
    return console


def say(words: str, *, stderr: bool = False) -> None:
    """One line, however long."""
    output_console(stderr=stderr).print(Text(words), soft_wrap=True)


def write_out(document: str) -> None:
    """A document as it is, such as JSON that is piped to another program; nothing where standard output is closed."""
    if sys.stdout is not None:
        sys.stdout.write(document)
        sys.stdout.flush()


def flush_output() -> None:
    """What was printed so far comes before what somebody else prints."""
    if sys.stdout is not None:
        sys.stdout.flush()


class StatusLine:
    """A few words of our own on standard error that change in place: in the terminal's title where somebody else prints to it,
    on a line else. Nothing where standard error is no terminal."""

    def __init__(self) -> None:
        self.is_shown = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._in_title = sys.stdout is not None and sys.stdout.isatty()

    def begin(self) -> None:
        self._write(_SAVE_TITLE if self._in_title else "")

    def show(self, words: str) -> None:
        shown = printable(words)
        self._write(f"\x1b]0;trueline: {shown}\x07" if self._in_title else f"{_ERASE_LINE}{shown}")

    def end(self) -> None:
        self._write(_RESTORE_TITLE if self._in_title else _ERASE_LINE)

    def _write(self, sequence: str) -> None:
        if self.is_shown:
            sys.stderr.write(sequence)
            sys.stderr.flush()
