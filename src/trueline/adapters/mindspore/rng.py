"""Seeds of MindSpore's random streams. Nothing in this adapter ever draws from them."""

from __future__ import annotations

import sys
from typing import Any

import mindspore as ms
from mindspore import dataset

from trueline.adapters.base import Watch, guarded
from trueline.recorder.patches import Patches
from trueline.recorder.process import note_seed


class SeedWatch(Watch):
    """Watches `mindspore.set_seed`, which also seeds numpy, `manual_seed`, and the seed of datasets."""

    def install(self, patches: Patches) -> None:
        # The attribute of that name in its package is a function; the module is found only here.
        module = sys.modules["mindspore.common.seed"]
        original = module.__dict__["set_seed"]
        for owner in (ms, ms.common, module):
            if vars(owner).get("set_seed") is original:
                patches.replace(owner, "set_seed", self._watched("mindspore", original))
        if hasattr(ms, "manual_seed"):
            patches.replace(ms, "manual_seed", self._watched("mindspore", ms.manual_seed))
        patches.replace(dataset.config, "set_seed", self._watched("mindspore.dataset", dataset.config.set_seed))

    def _watched(self, library: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._seeded(library, args, kwargs)
            return result

        return watched

    @guarded
    def _seeded(self, library: str, args: Any, kwargs: Any) -> None:
        note_seed(self.recorder, library, args, kwargs)
