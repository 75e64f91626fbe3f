"""Collective operations that the script calls itself."""

from __future__ import annotations

from typing import Any

import torch

from trueline.adapters.base import Watch, guarded
from trueline.record.patches import Patches

_NAMES = (
    "all_reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce", "reduce_scatter", "scatter", "gather", "barrier",
)  # fmt: skip


class CollectiveWatch(Watch):
    """Watches the functions of `torch.distributed`."""

    def install(self, patches: Patches) -> None:
        if not torch.distributed.is_available():
            return
        for name in _NAMES:
            patches.replace(torch.distributed, name, self._watched(name, getattr(torch.distributed, name)))

    def _watched(self, name: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not torch.compiler.is_compiling():
                self._called(name)
            return result

        return watched

    @guarded
    def _called(self, name: str) -> None:
        self.recorder.event("collective", location=self.recorder.location(), detail={"operation": name})
