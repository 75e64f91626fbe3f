"""Random numbers that a script draws while it trains: in aligned runs the same ones on both sides.

Noise that is added to inputs, or drawn by a model itself as a variational autoencoder does, would tell two runs apart that do the
same. What is drawn before the first batch, such as data and initial weights, stays as it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.tensors import is_plain
from trueline.record.patches import Patches

_FUNCTIONS = {"randn": "normal", "randn_like": "normal", "rand": "uniform", "rand_like": "uniform"}
# With what is done to standard numbers: `normal_(mean, std)`, `uniform_(from, to)`.
_METHODS = {"normal_": ("normal", ("mean", "std")), "uniform_": ("uniform", ("from", "to"))}


class NoiseWatch(Watch):
    """Watches what draws normal and uniform numbers, in runs that are aligned to others or that others are aligned to."""

    def install(self, patches: Patches) -> None:
        if self.recorder.alignment is None:
            return
        for name, kind in _FUNCTIONS.items():
            patches.replace(torch, name, self._watched(getattr(torch, name), kind))
        for name, (kind, names) in _METHODS.items():
            patches.replace(Tensor, name, self._watched_in_place(getattr(Tensor, name), kind, names))

    def _watched(self, original: Any, kind: str) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            drawn = original(*args, **kwargs)
            self._replace(drawn, kind, 0.0, 1.0)
            return drawn

        return watched

    def _watched_in_place(self, original: Any, kind: str, names: tuple[str, str]) -> Any:
        def watched(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            drawn = original(tensor, *args, **kwargs)
            given = dict(zip(names, args, strict=False)) | kwargs
            first, second = given.get(names[0], 0.0), given.get(names[1], 1.0)
            self._replace(drawn, kind, first, second if kind == "normal" else second - first)
            return drawn

        return watched

    @guarded
    def _replace(self, drawn: Any, kind: str, offset: float, factor: float) -> None:
        alignment = self.recorder.alignment
        if alignment is None or not isinstance(drawn, Tensor) or not is_plain(drawn):
            return
        values = alignment.noise(kind, tuple(drawn.shape))
        if values is not None:
            with torch.no_grad():
                drawn.copy_(torch.from_numpy(values * factor + offset))
