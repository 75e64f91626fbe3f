"""Files that the script writes with `torch.save`, which does not go through python's `open`."""

from __future__ import annotations

import os
from typing import Any

import torch

from trueline.adapters.base import Watch, guarded
from trueline.record.patches import Patches


class SaveWatch(Watch):
    """Watches `torch.save`."""

    def install(self, patches: Patches) -> None:
        patches.replace(torch, "save", self._watched(torch.save))

    def _watched(self, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            target = args[1] if len(args) > 1 else kwargs.get("f")
            if isinstance(target, str | os.PathLike):
                self._saving(target)
            return original(*args, **kwargs)

        return watched

    @guarded
    def _saving(self, target: str | os.PathLike[str]) -> None:
        path = os.path.abspath(os.fspath(target))  # noqa: PTH100 - links must stay as the script names them
        detail = {"path": path, "new": not os.path.lexists(path)}
        self.recorder.event("file_written", location=self.recorder.location(), detail=detail)
