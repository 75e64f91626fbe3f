"""Seeds of torch's random streams. Nothing in this adapter ever draws from them."""

from __future__ import annotations

from typing import Any

import torch

from trueline.adapters.base import Watch, guarded
from trueline.recorder.patches import Patches
from trueline.recorder.process import note_seed


class SeedWatch(Watch):
    """Watches `torch.manual_seed`, which seeds every device, and `torch.seed`."""

    def install(self, patches: Patches) -> None:
        for name in ("manual_seed", "seed"):
            patches.replace(torch, name, self._watched(getattr(torch, name)))

    def _watched(self, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._seeded(args, kwargs)
            return result

        return watched

    @guarded
    def _seeded(self, args: Any, kwargs: Any) -> None:
        note_seed(self.recorder, "torch", args, kwargs)
