"""Files that the script writes with `torch.save`, which does not go through python's `open`."""

from __future__ import annotations

import os
from typing import Any

import torch

from trueline.adapters.shared.saving import SaveWatch as SharedSaveWatch
from trueline.recorder.patches import Patches


class SaveWatch(SharedSaveWatch):
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
