"""Files that are written out of sight of python's `open`."""

from __future__ import annotations

import os

from trueline.adapters.base import Watch, guarded


class SaveWatch(Watch):
    """Told by each framework's own watch of what saves tensors."""

    @guarded
    def _saving(self, target: str | os.PathLike[str]) -> None:
        """A file of this name is about to be written; a second run has to find everything as before."""
        self.recorder.before_writing(target)
