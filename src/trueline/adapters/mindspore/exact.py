"""Cells of MindSpore once more in float64 (adapters/shared/exact.py): convolutions and BatchNorm refuse that on CPUs."""

from __future__ import annotations

import copy
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.common import _no_grad

from trueline.adapters.mindspore.tensors import array_of, tensors_in
from trueline.adapters.shared.exact import Array, Call, Change, changed_in
from trueline.adapters.shared.exact import ExactReplay as SharedExactReplay


class ExactReplay(SharedExactReplay):
    # A kernel that fails takes the gradient function along that the forward pass belongs to.
    at_once = False

    def in_float64(self, layer: nn.Cell) -> nn.Cell | None:
        module = type(layer).__module__
        if not module.startswith("mindspore.") or layer._forward_hook or layer._forward_pre_hook:
            return None
        copied: nn.Cell = copy.deepcopy(layer)
        for parameter in copied.get_parameters():
            if parameter.dtype == ms.float32:
                parameter.set_dtype(ms.float64)
        return copied

    def copied(self, given: Any) -> Any:
        return changed_in(given, Tensor, lambda value: array_of(value).astype(np.float64) if value.is_floating_point() else value)

    def replayed(self, call: Call, change: Change) -> Any:
        args, kwargs = changed_in(call.given, np.ndarray, lambda values: Tensor(change(values)))
        with _no_grad():
            return call.layer.construct(*args, **kwargs)

    def floats_in(self, output: Any) -> list[Array]:
        return [array_of(tensor).copy() for tensor in tensors_in(output, most=4) if tensor.is_floating_point()]
