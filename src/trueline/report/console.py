"""The terminal that reports are written to."""

from __future__ import annotations

import os

from rich.console import Console

_WIDEST = 110
_WIDTH_OF_A_FILE = 100


def output_console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, up to where lines get hard to read; plain text when it is not a terminal.

    Nothing is highlighted by guess: colour in a report always means something.
    """
    console = Console(stderr=stderr, highlight=False, emoji=False)
    known = console.is_terminal or "COLUMNS" in os.environ
    console.width = min(console.width, _WIDEST) if known else _WIDTH_OF_A_FILE
    return console
