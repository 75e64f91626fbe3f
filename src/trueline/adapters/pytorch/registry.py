"""Numbers for the user's modules and parameters, without leaving a trace on them."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from trueline.adapters.pytorch import kinds, tensors
from trueline.adapters.pytorch.tensors import is_plain
from trueline.adapters.shared.registry import Registry as SharedRegistry
from trueline.recorder import Recorder


class Registry(SharedRegistry):
    """The trees of root modules, and which memory was filled or loaded by which line."""

    kinds = kinds
    tensors = tensors

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.loaded_storages: dict[int, StorageWeakRef] = {}
        self.filled: dict[int, tuple[int | None, StorageWeakRef]] = {}

    def mark_tensor_loaded(self, tensor: Any, location: int | None) -> None:
        super().mark_tensor_loaded(tensor, location)
        if is_plain(tensor) and tensor.numel():
            self.loaded_storages[tensor.data_ptr()] = StorageWeakRef(tensor.untyped_storage())

    def init_location(self, tensor: Tensor) -> int | None:
        if not is_plain(tensor) or tensor.numel() == 0:
            return None
        location, storage = self.filled.get(tensor.data_ptr(), (None, None))
        # The memory of a tensor that is gone may have been given to this one.
        return location if storage is not None and storage.cdata == tensor.untyped_storage()._cdata else None

    def gradient_of(self, tensor: Tensor) -> Tensor | None:
        return tensor.grad
