"""The folder of a run in which a second run of it is made, and goes when that is over."""

from __future__ import annotations

import fcntl
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
    descriptor = os.open(staging, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Held until this is over, or this process is: nobody takes it for a leftover.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield staging
    finally:
        os.close(descriptor)
        remove_staging(staging)


def remove_staging(staging: Path) -> None:
    """Links lead out of it, and are not followed."""
    if staging.is_symlink():
        staging.unlink()
        return
    layers = staging / "layers"
    if layers.is_dir() and not any(folder.is_symlink() for folder in (staging, layers)):
        for layer in os.scandir(layers):
            # The work folder of an overlay lets not even its owner look into it.
            work = Path(layer.path, "work", "work")
            if layer.is_dir(follow_symlinks=False) and not work.parent.is_symlink() and not work.is_symlink():
                with suppress(OSError):
                    work.chmod(0o700)
    shutil.rmtree(staging, ignore_errors=True)
