"""Layers of torch once more in float64 (adapters/shared/exact.py)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trueline.adapters.pytorch.tensors import array_of, tensors_in
from trueline.adapters.shared.exact import Array, Call, Change, changed_in
from trueline.adapters.shared.exact import ExactReplay as SharedExactReplay


class ExactReplay(SharedExactReplay):
    def in_float64(self, layer: nn.Module) -> nn.Module | None:
        if not type(layer).__module__.startswith("torch.nn.") or layer._forward_hooks or layer._forward_pre_hooks:
            return None
        if torch.is_autocast_enabled("cpu"):
            return None
        with torch.no_grad():
            return copy.deepcopy(layer).double()

    def copied(self, given: Any) -> Any:
        def array(value: Tensor) -> Any:
            return array_of(value.detach()).astype(np.float64) if value.is_floating_point() else value.detach().clone()

        return changed_in(given, Tensor, array)

    def replayed(self, call: Call, change: Change) -> Any:
        args, kwargs = changed_in(call.given, np.ndarray, lambda values: torch.from_numpy(change(values)))
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return call.layer.forward(*args, **kwargs)

    def floats_in(self, output: Any) -> list[Array]:
        return [array_of(tensor) for tensor in tensors_in(output, most=4) if tensor.is_floating_point()]
