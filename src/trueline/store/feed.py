"""The batches that a run was trained with, one after another, so that another run can be fed with the same: below `feed/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from trueline.reading import reading
from trueline.tensorfiles.safetensors_file import open_safetensors

FEED_FOLDER = "feed"
# What all batches of a run may take on the disk together.
_MOST_BYTES = 1 << 30


class Feed:
    """The batches of one run; each is a list of arrays."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FEED_FOLDER
        self._bytes = 0

    def write(self, number: int, arrays: list[NDArray[Any]]) -> bool:
        """Keep a batch; False when all of them would take too much room."""
        self._bytes += sum(array.nbytes for array in arrays)
        if self._bytes > _MOST_BYTES:
            return False
        self._folder.mkdir(exist_ok=True)
        path = self._file(number)
        partial = path.with_suffix(".partial")
        # Safetensors writes the memory of an array as it lies.
        named = {str(place): np.array(array, order="C") for place, array in enumerate(arrays)}
        save_file(named, str(partial))
        partial.replace(path)
        return True

    def read(self, number: int) -> list[NDArray[Any]] | None:
        """The batch of this number; None when it was not kept."""
        path = self._file(number)
        if not path.is_file():
            return None
        with reading(path, "Record the run again."):
            source = open_safetensors(path)
            # Memory of its own: what comes from a file must not be written to.
            return [np.array(source.stored(str(place)).whole_raw()) for place in range(len(source.entries))]

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.glob("*.safetensors")) if self._folder.is_dir() else 0

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:06d}.safetensors"
