"""The folder of a run in which a second run of it is made, and goes when that is over."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# The number of the process that asked is its ending.
STAGING = "again-"


@contextmanager
def staging_in(directory: Path) -> Iterator[Path]:
    """A new folder below `directory`, with two empty ones in it: `shared` for the record, `stage` for the view of the files."""
    staging = directory.absolute() / f"{STAGING}{os.getpid()}"
    remove_staging(staging)
    for name in ("shared", "stage"):
        (staging / name).mkdir(parents=True)
    try:
        yield staging
    finally:
        remove_staging(staging)


def remove_staging(staging: Path) -> None:
    """The work folder of an overlay lets not even its owner look into it."""
    if staging.is_symlink():
        staging.unlink()
        return
    for folder in staging.glob("layers/*/work/work"):
        with suppress(OSError):
            folder.chmod(0o700)
    shutil.rmtree(staging, ignore_errors=True)
