"""Cells of MindSpore once more in float64 (adapters/shared/exact.py): convolutions and BatchNorm refuse that on CPUs."""

from __future__ import annotations

import copy
from typing import Any

import mindspore as ms
from mindspore import Tensor, nn
from mindspore.common import _no_grad

from trueline.adapters.mindspore.tensors import array_of, tensors_in
from trueline.adapters.shared.exact import Array, Change
from trueline.adapters.shared.exact import ExactReplay as SharedExactReplay


class ExactReplay(SharedExactReplay):
    def in_float64(self, layer: nn.Cell) -> nn.Cell | None:
        module = type(layer).__module__
        if not module.startswith("mindspore.") or layer._forward_hook or layer._forward_pre_hook:
            return None
        copied: nn.Cell = copy.deepcopy(layer)
        for parameter in copied.get_parameters():
            if parameter.dtype == ms.float32:
                parameter.set_dtype(ms.float64)
        return copied

    def given(self, copied: nn.Cell, args: Any, kwargs: Any, change: Change) -> Any:
        def changed(value: Any) -> Any:
            if isinstance(value, tuple | list):
                return type(value)(changed(part) for part in value)
            if not isinstance(value, Tensor) or not value.is_floating_point():
                return value
            return Tensor(change(array_of(value).astype("float64")))

        with _no_grad():
            return copied.construct(*changed(args), **{name: changed(value) for name, value in kwargs.items()})

    def floats_in(self, output: Any) -> list[Array]:
        return [array_of(tensor) for tensor in tensors_in(output, most=4) if tensor.is_floating_point()]
