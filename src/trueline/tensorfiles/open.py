"""Tensors of a file or of a folder."""

from __future__ import annotations

from pathlib import Path

from trueline.errors import TruelineError
from trueline.reading import reading
from trueline.tensorfiles.file import KNOWN, open_file
from trueline.tensorfiles.folder import open_folder
from trueline.tensorfiles.source import TensorSource


def open_tensors(path: str | Path) -> TensorSource:
    """The tensors of a file or folder. Raises a TruelineError if none of them can be read; otherwise what could not be read
    is listed in `problems`."""
    place = Path(path)
    if not place.exists():
        raise TruelineError(f"There is no file or folder {str(path)!r}. Expected {KNOWN}.")
    if place.is_dir():
        with reading(place, "Give a part of it."):
            source = open_folder(place)
    else:
        source = open_file(place)
    if not source.entries:
        more = f" {source.problems[0]}" if source.problems else f" Expected {KNOWN}."
        raise TruelineError(f"No tensor can be read from {path}.{more}")
    return source
