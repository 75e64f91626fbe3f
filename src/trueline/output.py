"""What may appear on a terminal, and the one way to warn while a script of the user's is running.

Names of modules, keys of checkpoints, fields of a run are anybody's text: a terminal obeys what is
hidden in it. What commands print goes through report/console.py, which shows such text by `printable` too.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress

_STANDARD_ERROR = 2
# What Python takes for printable and nobody sees: fillers, and selectors of another look.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0e\U000e0100-\U000e01ef]")
# Blanks that it does not take for printable.
_BLANKS = "\u00a0\u2007\u2009\u202f\u3000"
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")


def printable(text: str) -> str:
    """The text on one line. What is not to be seen is written out, an escape character as a backslash and `x1b`: control
    characters, line breaks, what turns the direction of writing or has no width, bytes that are no text."""
    return text if text.isascii() and text.isprintable() else _NOT_ASCII.sub(lambda found: _shown(found[0]), text)


def is_seen(character: str) -> bool:
    return character in _BLANKS or (character.isprintable() and _UNSEEN.match(character) is None)


def _shown(character: str) -> str:
    return character if is_seen(character) else character.encode("unicode_escape").decode("ascii")


def warn(words: str) -> None:
    """Say something on standard error, while a script of the user's is running or before it starts.

    It never falls into anything else: where standard error is closed Python's `print` would take standard output, and the
    descriptor would be that of the file that the script opens next.
    """
    stream = sys.stderr
    if stream is None or (stream is sys.__stderr__ and _identity() != _at_start):
        return
    # The script may have put something of its own there: what that raises is not the end of the script.
    with suppress(Exception):
        stream.write(f"trueline: {printable(words)}\n")
        stream.flush()


def _identity() -> tuple[int, int] | None:
    """Which file the descriptor of standard error leads to."""
    try:
        status = os.fstat(_STANDARD_ERROR)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def warn_here() -> None:
    """A command or a recording starts: where standard error leads now is where its user wants to be warned."""
    global _at_start  # noqa: PLW0603 - there is one standard error
    _at_start = _identity()


_at_start = _identity()
