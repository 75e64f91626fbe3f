"""The files that a run wrote, put out of the way of its rerun and back in their place afterwards.

A second run must neither find what the first one left (it might resume from it) nor write over it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trueline.errors import RunNotFound
from trueline.store import Run

_MOST_BYTES = 500 << 20
_MOST_FILES = 500


def written_files(run: Run) -> dict[Path, bool]:
    """The files that the script wrote, and whether it made them: they were not there before."""
    found: dict[Path, bool] = {}
    for event in run.events_of("file_written"):
        found.setdefault(Path(str(event.detail.get("path"))), bool(event.detail.get("new")))
    return {path: new for path, new in found.items() if path.is_file()}


def can_be_kept(files: dict[Path, bool]) -> bool:
    """Whether a copy of them is affordable."""
    return len(files) <= _MOST_FILES and sum(path.stat().st_size for path in files) <= _MOST_BYTES


@contextmanager
def put_away(files: dict[Path, bool], folder: Path, rerun: Path) -> Iterator[None]:
    """Files that the first run made are moved to `folder`, the others are copied there. At the end all are as before, and the
    files that only the rerun (recorded in the directory of that name) made are gone."""
    folder.mkdir(parents=True)
    kept: list[tuple[Path, Path]] = []
    try:
        for number, (path, new) in enumerate(files.items()):
            copy = folder / str(number)
            kept.append((path, copy))
            if new:
                shutil.move(path, copy)
            else:
                shutil.copy2(path, copy)
        yield
    finally:
        known = {path for path, _ in kept}
        for path in _made_by(rerun):
            if path not in known:
                path.unlink(missing_ok=True)
        for path, copy in kept:
            if copy.is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(copy, path)
        shutil.rmtree(folder, ignore_errors=True)


def _made_by(directory: Path) -> list[Path]:
    try:
        run = Run(directory)
    except RunNotFound:
        return []
    try:
        return [path for path, new in written_files(run).items() if new]
    finally:
        run.close()
