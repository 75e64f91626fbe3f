"""Files that the script writes with `save_checkpoint`, which need not go through python's `open`."""

from __future__ import annotations

import os
import sys
from typing import Any

import mindspore as ms

from trueline.adapters.shared.saving import SaveWatch as SharedSaveWatch
from trueline.recorder.patches import Patches


class SaveWatch(SharedSaveWatch):
    """Watches `save_checkpoint`, which `ModelCheckpoint` calls too."""

    def install(self, patches: Patches) -> None:
        original = ms.save_checkpoint
        for owner in (ms, ms.train, sys.modules[original.__module__], sys.modules["mindspore.train.callback._checkpoint"]):
            if vars(owner).get("save_checkpoint") is original:
                patches.replace(owner, "save_checkpoint", self._watched(original))

    def _watched(self, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            target = args[1] if len(args) > 1 else kwargs.get("ckpt_file_name")
            if isinstance(target, str | os.PathLike):
                self._saving(_with_ending(os.fspath(target), kwargs.get("format", "ckpt")))
            return original(*args, **kwargs)

        return watched


def _with_ending(path: str, kind: str) -> str:
    """What the file is called: MindSpore adds the ending where there is none."""
    return path if path.endswith(f".{kind}") else f"{path}.{kind}"
