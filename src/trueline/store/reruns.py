"""What became of the second runs that were wanted of a run: `reruns.json`, by the folder that they would have gone to."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueline import limits
from trueline.errors import TruelineError
from trueline.reading import read_whole, reading
from trueline.store.format import replace_file

RERUNS_FILE = "reruns.json"


class RerunNote(msgspec.Struct, frozen=True):
    """`refused`: why there is none. `doubt`: what it did not find as the first run had found it."""

    refused: str | None = None
    doubt: str | None = None


def rerun_notes(directory: Path) -> dict[str, RerunNote]:
    """By folder; nothing where nobody wanted any."""
    path = directory / RERUNS_FILE
    try:
        with reading(path):
            return msgspec.json.decode(read_whole(path, limits.NOTES_BYTES), type=dict[str, RerunNote])
    except TruelineError:
        return {}


def note_rerun(directory: Path, folder: str, note: RerunNote) -> None:
    notes = rerun_notes(directory) | {folder: note}
    replace_file(directory / RERUNS_FILE, msgspec.json.encode(notes))
