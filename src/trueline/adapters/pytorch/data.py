"""Batches: what loaders yield, what is handed to root modules directly, and the targets that go with them."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.weak import WeakIdKeyDictionary

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.tensors import dtype_name, is_plain
from trueline.record import Recorder, to_json
from trueline.record.fingerprint import fingerprints
from trueline.record.patches import Patches

# Batches that a call may still be fed from, and how many of them a loader may be ahead when only time can tell.
_REMEMBERED = 64
_PREFETCHED = 3
_TARGET_NAMES = {"label", "labels", "label_ids", "target", "targets", "y"}
# Positions in the rows of the table `batch`.
_SEQ, _STEP, _SIZE, _TARGETS, _TARGET_KIND = 0, 1, 6, 8, 9


class _Handed:
    """The tensors that a root module was called with last, without keeping them alive."""

    def __init__(self, seq: int, step: int, root: int, tensors: list[Tensor]) -> None:
        self.seq = seq
        self._step = step
        self._root = root
        self._tensors = [weakref.ref(tensor) for tensor in tensors]

    def is_same(self, step: int, root: int, tensors: list[Tensor]) -> bool:
        if (step, root, len(tensors)) != (self._step, self._root, len(self._tensors)):
            return False
        return all(reference() is tensor for reference, tensor in zip(self._tensors, tensors, strict=True))


class BatchWatch(Watch):
    """Watches DataLoaders and the tensors that enter root modules."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._loader_ids: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._built: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._loaders = 0
        self._epochs: dict[int, int] = {}
        self._sources: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._layouts: dict[int | None, list[Any]] = {}
        self._fetched: deque[tuple[list[Any], list[StorageWeakRef]]] = deque(maxlen=_REMEMBERED)
        self._linked: set[int] = set()
        self._direct: _Handed | None = None
        self._current: list[Any] | None = None
        self.traced_tensors: list[tuple[int, Tensor]] = []

    def install(self, patches: Patches) -> None:
        patches.replace(DataLoader, "__init__", self._watched_construction())
        patches.replace(DataLoader, "__iter__", self._watched_iter())
        patches.replace(_BaseDataLoaderIter, "__next__", self._watched_next())

    def _watched_construction(self) -> Any:
        original: Any = DataLoader.__init__
        watch = self

        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(loader, *args, **kwargs)
            if watch.recorder.active:
                watch._built[loader] = watch.recorder.location()

        return __init__

    def _watched_iter(self) -> Any:
        original: Any = DataLoader.__iter__
        watch = self

        def __iter__(loader: Any) -> Any:  # noqa: N807 - it replaces that method
            iterator = original(loader)
            watch._epoch_started(loader, iterator)
            return iterator

        return __iter__

    @guarded
    def _epoch_started(self, loader: DataLoader[Any], iterator: Any) -> None:
        number = self._loader_ids.get(loader)
        if number is None:
            self._loaders += 1
            number = self._loader_ids[loader] = self._loaders
            self.recorder.row("loader", _loader_row(number, loader, self._built.get(loader)))
        self._epochs[number] = self._epochs.get(number, -1) + 1
        self._sources[iterator] = [number, self._epochs[number], 0]

    def _watched_next(self) -> Any:
        original: Any = _BaseDataLoaderIter.__next__
        watch = self

        def __next__(iterator: Any) -> Any:  # noqa: N807 - it replaces that method
            if not watch.recorder.active:
                return original(iterator)
            started = perf_counter()
            batch = original(iterator)
            watch._batch_fetched(iterator, batch, perf_counter() - started)
            return batch

        return __next__

    @guarded
    def _batch_fetched(self, iterator: Any, batch: Any, wait: float) -> None:
        self.recorder.wait += wait
        source = self._sources.get(iterator)
        if source is None:
            return
        number, epoch, position = source
        source[2] += 1
        fields = _fields_of(batch)
        row = self._row(number, epoch, position, wait, fields)
        if row is not None:
            tensors = [tensor for _, tensor in fields if is_plain(tensor)]
            self._fetched.append((row, [StorageWeakRef(tensor.untyped_storage()) for tensor in tensors]))
            self.traced_tensors = [(row[_SEQ], tensor) for tensor in tensors] if self.recorder.traced else []
            self._direct = None

    def _row(
        self, loader: int | None, epoch: int | None, position: int | None, wait: float, fields: list[tuple[str, Tensor]]
    ) -> list[Any] | None:
        recorder = self.recorder
        sized = [(name, tensor) for name, tensor in fields if tensor.dim() > 0 and is_plain(tensor)]
        if not sized:
            return None
        size = sized[0][1].shape[0]
        sized = [(name, tensor) for name, tensor in sized if tensor.shape[0] == size]
        target = _target_field(sized) if loader is not None else None
        arrays = [_array(tensor) for name, tensor in sized if name != target and tensor.device.type == "cpu"]
        prints = fingerprints(arrays).astype("<u8").tobytes() if arrays and size else b""
        targets, kind = _targets_of(dict(sized)[target]) if target is not None else (None, None)
        layout = [(name, tensor.shape, tensor.dtype) for name, tensor in fields]
        described = None
        if self._layouts.get(loader) != layout:
            self._layouts[loader] = layout
            described = to_json([{"name": name, "shape": list(part.shape), "dtype": dtype_name(part)} for name, part in fields])
        row = [
            recorder.next_seq(), recorder.step, loader, epoch, position, wait, size, prints, targets, kind, described,
        ]  # fmt: skip
        recorder.row("batch", row)
        if recorder.sampled:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                for place, (_, tensor) in enumerate(fields):
                    if is_plain(tensor) and tensor.dtype is not torch.bool:
                        self._registry.stat(recorder.step, "batch", loader or 0, place, tensor)
        return row

    def batch_of(self, inputs: list[Tensor], root: int) -> int | None:
        """The batch that a root call is fed with: a loader's, found by shared storage or by time, else the inputs."""
        sized = [tensor for tensor in inputs if tensor.dim() > 0 and is_plain(tensor)]
        if not sized:
            return None
        row = self._fetched_row(sized)
        if row is None:
            if self._direct is not None and self._direct.is_same(self.recorder.step, root, sized):
                return self._direct.seq
            row = self._row(None, None, None, 0.0, [(str(place), tensor) for place, tensor in enumerate(sized)])
            if row is None:
                return None
            self._direct = _Handed(row[_SEQ], self.recorder.step, root, sized)
        self._linked.add(row[_SEQ])
        self._current = row
        return int(row[_SEQ])

    def _fetched_row(self, inputs: list[Tensor]) -> list[Any] | None:
        if not self._fetched:
            return None
        storages = {tensor.untyped_storage()._cdata for tensor in inputs}
        row: list[Any]
        for row, own in reversed(self._fetched):
            if any(reference.cdata in storages and not reference.expired() for reference in own):
                return row
        newest = list(self._fetched)[-_PREFETCHED:]
        recent: list[list[Any]] = [row for row, _ in newest if row[_STEP] == self.recorder.step or row[_SEQ] not in self._linked]
        same_size = [row for row in recent if row[_SIZE] == inputs[0].shape[0]]
        waiting: list[list[Any]] = [row for row in same_size if row[_SEQ] not in self._linked]
        if waiting:
            return waiting[0]
        return same_size[-1] if same_size else None

    def note_targets(self, target: Tensor) -> None:
        """A loss was computed against these targets: they belong to the current batch if it does not know its own."""
        row = self._current
        if row is None or row[_TARGETS] is not None or row[_STEP] != self.recorder.step:
            return
        if target.dim() > 0 and target.shape[0] == row[_SIZE] and is_plain(target) and target.device.type == "cpu":
            row[_TARGETS], row[_TARGET_KIND] = _targets_of(target)

    @staticmethod
    def is_fast_path_risk(module: nn.Module) -> bool:
        """Whether tracing could change which kernel runs: attention in eval mode takes a fused path when nobody watches."""
        return any(
            isinstance(part, nn.MultiheadAttention | nn.TransformerEncoderLayer) and not part.training
            for part in module.modules()
        )


def _loader_row(number: int, loader: DataLoader[Any], built: int | None) -> tuple[Any, ...]:
    dataset = loader.dataset
    try:
        length = len(dataset)  # type: ignore[arg-type]
    except TypeError:
        length = None
    sampler = type(loader.sampler).__name__ if hasattr(loader, "sampler") else None
    settings = {
        "drop_last": loader.drop_last,
        "workers": loader.num_workers,
        "batch_sampler": type(loader.batch_sampler).__name__,
    }
    return number, type(dataset).__name__, length, loader.batch_size, sampler, built, to_json(settings)


def _fields_of(batch: Any, prefix: str = "") -> list[tuple[str, Tensor]]:
    """The tensors of a batch with the names or positions under which the script finds them."""
    if isinstance(batch, Tensor):
        return [(prefix or "0", batch)]
    if isinstance(batch, Mapping):
        items: Any = batch.items()
    elif isinstance(batch, list | tuple):
        items = enumerate(batch)
    else:
        items = [(name, value) for name, value in getattr(batch, "__dict__", {}).items() if isinstance(value, Tensor)]
    fields = []
    for name, value in items:
        fields.extend(_fields_of(value, f"{prefix}.{name}" if prefix else str(name)))
    return fields


def _target_field(fields: list[tuple[str, Tensor]]) -> str | None:
    """The field that holds the targets: by its name, or the last of several when it has one value per sample."""
    for name, _ in fields:
        if name.rpartition(".")[2].lower() in _TARGET_NAMES:
            return name
    if len(fields) < 2:
        return None
    name, tensor = fields[-1]
    return name if tensor.numel() == tensor.shape[0] or tensor.dim() < fields[0][1].dim() else None


def _targets_of(target: Tensor) -> tuple[bytes | None, str | None]:
    """One number per sample, when the targets are that simple."""
    if target.numel() != target.shape[0] or target.numel() == 0 or target.is_complex():
        return None, None
    values = target.detach().reshape(-1).to("cpu", torch.float64).numpy()
    kind = "value" if target.is_floating_point() else "class"
    if kind == "value" and np.isin(values, (0.0, 1.0)).all():
        kind = "class"
    return values.astype("<f8").tobytes(), kind


def _array(tensor: Tensor) -> Any:
    values = tensor.detach().contiguous()
    try:
        return values.numpy()
    except TypeError:
        # A dtype that numpy does not know: its bytes tell samples apart just as well.
        return values.reshape(values.shape[0], -1).view(torch.uint8).numpy()
