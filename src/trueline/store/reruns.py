"""What became of the second runs that were wanted of a run: `reruns.json`, by the folder that they would have gone to."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueline.store.format import replace_file

RERUNS_FILE = "reruns.json"
_LARGEST = 1 << 20


class RerunNote(msgspec.Struct, frozen=True):
    """`refused`: why there is none. `doubt`: what it did not find as the first run had found it."""

    refused: str | None = None
    doubt: str | None = None


def rerun_notes(directory: Path) -> dict[str, RerunNote]:
    """By folder; nothing where nobody wanted any."""
    path = directory / RERUNS_FILE
    try:
        if path.stat().st_size > _LARGEST:
            return {}
        return msgspec.json.decode(path.read_bytes(), type=dict[str, RerunNote])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def note_rerun(directory: Path, folder: str, note: RerunNote) -> None:
    notes = rerun_notes(directory) | {folder: note}
    replace_file(directory / RERUNS_FILE, msgspec.json.encode(notes))
