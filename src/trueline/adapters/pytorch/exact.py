"""Layers of torch once more in float64 (adapters/shared/exact.py)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from trueline.adapters.pytorch.tensors import array_of, tensors_in
from trueline.adapters.shared.exact import Array, Change
from trueline.adapters.shared.exact import ExactReplay as SharedExactReplay


class ExactReplay(SharedExactReplay):
    def in_float64(self, layer: nn.Module) -> nn.Module | None:
        if not type(layer).__module__.startswith("torch.nn.") or layer._forward_hooks or layer._forward_pre_hooks:
            return None
        if torch.is_autocast_enabled("cpu"):
            return None
        with torch.no_grad():
            return copy.deepcopy(layer).double()

    def given(self, copied: nn.Module, args: Any, kwargs: Any, change: Change) -> Any:
        def changed(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.is_floating_point():
                return value
            return torch.from_numpy(change(array_of(value.detach()).astype("float64")))

        with torch._C.DisableTorchFunction(), torch.no_grad():
            return copied.forward(*tree_map(changed, args), **tree_map(changed, kwargs))

    def floats_in(self, output: Any) -> list[Array]:
        return [array_of(tensor) for tensor in tensors_in(output, most=4) if tensor.is_floating_point()]
