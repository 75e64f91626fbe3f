"""Batches: what loaders yield, what is handed to root modules directly, and the targets that go with them."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from trueline.adapters.base import guarded, installed
from trueline.adapters.pytorch.draws import DrawWatch
from trueline.adapters.pytorch.fields import is_readable_float, nonfinite, readable
from trueline.adapters.pytorch.known_samples import KnownSamples, known_samples_of
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.samples import row_of
from trueline.adapters.pytorch.tensors import array_of, dtype_name, has_shape, is_plain, memory_of, replace, values_of
from trueline.adapters.shared.batches import (
    LOADER,
    SEQ,
    SIZE,
    STEP,
    TARGET_KIND,
    TARGETS,
    CurrentBatch,
    Handed,
    target_field,
    targets_of,
)
from trueline.adapters.shared.fields import FieldLook
from trueline.adapters.shared.samples import SampleKeeper
from trueline.recorder import Recorder, to_json
from trueline.recorder.alignment import Alignment
from trueline.recorder.fingerprint import fingerprints
from trueline.recorder.identity import ByIdentity
from trueline.recorder.patches import Patches

# Tensors of batches that a call may still be fed with, and how many batches a loader may be ahead when only time can tell.
_REMEMBERED = 256
_PREFETCHED = 3


class _Layout:
    """Which fields of a batch hold one row per sample, and which of them the targets; the same from batch to batch."""

    def __init__(self, fields: list[tuple[str, Tensor]], *, has_targets: bool) -> None:
        self._fields = [(name, tensor.shape, tensor.dtype, tensor.device) for name, tensor in fields]
        sized = [place for place, (_, tensor) in enumerate(fields) if tensor.dim() > 0 and is_plain(tensor)]
        self.size = fields[sized[0]][1].shape[0] if sized else None
        sized = [place for place in sized if fields[place][1].shape[0] == self.size]
        name = target_field([(fields[place][0], tuple(fields[place][1].shape)) for place in sized]) if has_targets else None
        self.target = next((place for place in sized if fields[place][0] == name), None)
        self.inputs = [place for place in sized if place != self.target and fields[place][1].is_cpu]
        self.floats = [place for place, (_, tensor) in enumerate(fields) if is_readable_float(tensor)]
        self.read = sorted({*self.inputs, *self.floats})
        self.whole_numbers = self.target is None or not fields[self.target][1].is_floating_point()

    def fits(self, fields: list[tuple[str, Tensor]]) -> bool:
        return self._fields == [(name, tensor.shape, tensor.dtype, tensor.device) for name, tensor in fields]


class BatchWatch(CurrentBatch):
    """Watches DataLoaders and the tensors that enter root modules."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._loader_ids: ByIdentity = ByIdentity()
        self._built: ByIdentity = ByIdentity()
        self._loaders = 0
        self._epochs: dict[int, int] = {}
        # By iterator: the loader's number, the epoch, the position in it, and the places of the next batch in the dataset.
        self._sources: ByIdentity = ByIdentity()
        self._known: dict[int, KnownSamples | None] = {}
        self._layouts: dict[int | None, _Layout] = {}
        self._fetched: deque[list[Any]] = deque(maxlen=_PREFETCHED)
        self._by_address: OrderedDict[int, tuple[weakref.ref[Tensor], list[Any]]] = OrderedDict()
        self._linked: set[int] = set()
        self._direct: Handed | None = None
        self._draws = DrawWatch(recorder)
        self.fields = FieldLook(recorder, readable)
        self.samples = SampleKeeper(recorder, row_of)
        self._datasets: ByIdentity = ByIdentity()
        self._plain_datasets: dict[int, int] = {}
        self._dataset_count = 0
        # Whether the last root call was made without gradients or on a model in eval mode.
        self.evaluating = False
        self.traced_tensors: list[tuple[int, Tensor]] = []

    def install(self, patches: Patches) -> None:
        installed(self._draws, patches)
        patches.replace(DataLoader, "__init__", self._watched_construction())
        patches.replace(DataLoader, "__iter__", self._watched_iter())
        patches.replace(_BaseDataLoaderIter, "__next__", self._watched_next())
        patches.replace(_BaseDataLoaderIter, "_next_index", self._watched_next_index())

    def _watched_construction(self) -> Any:
        original: Any = DataLoader.__init__
        watch = self

        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(loader, *args, **kwargs)
            watch._loader_built(loader)

        return __init__

    @guarded
    def _loader_built(self, loader: DataLoader[Any]) -> None:
        self._built[loader] = self.recorder.location()

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
            settings = {**_loader_settings(loader), "dataset_object": self._dataset_number(loader.dataset)}
            self.recorder.row("loader", _loader_row(number, loader, self._built.get(loader), settings))
            self._known[number] = known_samples_of(loader, iterator) if self.recorder.alignment is None else None
        self._epochs[number] = self._epochs.get(number, -1) + 1
        self._sources[iterator] = [number, self._epochs[number], 0, None]

    def _dataset_number(self, dataset: Any) -> int:
        """Tells loaders of one dataset, or of parts of one, from loaders of several."""
        while hasattr(dataset, "dataset") and hasattr(dataset, "indices"):
            dataset = dataset.dataset
        number = self._datasets.get(dataset) or self._plain_datasets.get(id(dataset))
        if number is None:
            self._dataset_count += 1
            number = self._dataset_count
            try:
                self._datasets[dataset] = number
            except TypeError:
                # A list cannot be referred to weakly; one that goes on to another loader is in use until then.
                self._plain_datasets[id(dataset)] = number
        return int(number)

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

    def _watched_next_index(self) -> Any:
        original: Any = _BaseDataLoaderIter._next_index
        watch = self

        def _next_index(iterator: Any) -> Any:
            index = original(iterator)
            source = watch._sources.get(iterator)
            if source is not None:
                source[3] = index
            return index

        return _next_index

    @guarded
    def _batch_fetched(self, iterator: Any, batch: Any, wait: float) -> None:
        self.recorder.wait += wait
        source = self._sources.get(iterator)
        if source is None:
            return
        number, epoch, position, index = source
        source[2] += 1
        fields = _fields_of(batch)
        alignment = self.recorder.alignment
        aligned = alignment is not None and torch.is_grad_enabled() and self._trains_with(number)
        if alignment is not None and aligned:
            self._align(alignment, [tensor for _, tensor in fields])
        row = self._row(number, epoch, position, wait, fields, batch, index)
        if row is not None:
            if aligned:
                self._aligned = (row[SEQ], number)
            tensors = [tensor for _, tensor in fields if is_plain(tensor)]
            self._fetched.append(row)
            self._remember(row, tensors if row[TARGETS] is None else tensors[:-1] or tensors)
            self.traced_tensors = [(row[SEQ], tensor) for tensor in tensors] if self.recorder.traced else []
            self._direct = None

    def _align(self, alignment: Alignment, tensors: list[Tensor], *, by_hand: bool = False) -> None:
        """Let the tensors of a batch hold those of the run that this one is aligned to."""
        readable_tensors = [tensor for tensor in tensors if is_plain(tensor)]
        arrays = [array_of(tensor) for tensor in readable_tensors]
        replaced = alignment.fetched(arrays, step=self.recorder.step, by_hand=by_hand)
        for tensor, values in zip(readable_tensors, replaced or [], strict=False):
            replace(tensor, values)

    @guarded
    def align_direct(self, alignment: Alignment, inputs: list[Tensor]) -> None:
        """The same for tensors that no loader gave."""
        sized = [tensor for tensor in inputs if tensor.dim() > 0 and is_plain(tensor) and not tensor.requires_grad]
        if sized and self._fetched_row(sized) is None and not self._draws.is_filled(sized):
            self._align(alignment, sized, by_hand=True)
            self._draws.entered(alignment, sized)

    def align_target(self, alignment: Alignment, target: Any) -> None:
        """And for the targets that belong to them."""
        row = self._current
        if row is None or row[LOADER] is not None or not isinstance(target, Tensor) or not is_plain(target) or target.dim() == 0:
            return
        # What a model gave is no target, wherever a loss takes it.
        if target.requires_grad or self._draws.is_filled([target]):
            return
        values = alignment.target(array_of(target))
        if values is not None:
            replace(target, values)

    def _remember(self, row: list[Any], tensors: list[Tensor]) -> None:
        for tensor in tensors:
            self._by_address[tensor.data_ptr()] = (weakref.ref(tensor), row)
        while len(self._by_address) > _REMEMBERED:
            self._by_address.popitem(last=False)

    def _row(
        self,
        loader: int | None,
        epoch: int | None,
        position: int | None,
        wait: float,
        fields: list[tuple[str, Tensor]],
        source: Any = None,
        index: Any = None,
    ) -> list[Any] | None:
        recorder = self.recorder
        layout = self._layouts.get(loader)
        described = None
        if layout is None or not layout.fits(fields):
            layout = self._layouts[loader] = _Layout(fields, has_targets=loader is not None)
            described = to_json([{"name": name, "shape": list(part.shape), "dtype": dtype_name(part)} for name, part in fields])
        size = layout.size
        if size is None:
            return None
        known = self._known.get(loader) if loader is not None and described is None else None
        recalled = known.recall(index) if known is not None else None
        if recalled is not None:
            prints, targets, kind, missing = recalled[0], recalled[1] or None, "class" if recalled[1] else None, None
        else:
            prints, targets, kind, missing = _read(layout, fields)
            if known is not None and missing is None and layout.whole_numbers:
                known.learn(index, prints, targets or b"")
        row: list[Any] = [
            recorder.next_seq(), recorder.step, loader, epoch, position, wait, size, prints, targets, kind, described,
            missing,
        ]  # fmt: skip
        recorder.row("batch", row)
        inputs = [fields[place][1] for place in layout.inputs]
        self.samples.batch(row[SEQ], inputs, prints, held=loader is not None, source=source)
        if loader is not None:
            self.fields.at_batch(row[SEQ], loader, fields)
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
            self._direct = Handed(row[SEQ], self.recorder.step, root, sized)
        self._linked.add(row[SEQ])
        self._current = row
        return int(row[SEQ])

    def _fetched_row(self, inputs: list[Tensor]) -> list[Any] | None:
        if not self._fetched:
            return None
        for tensor in inputs:
            # The address of a tensor that is gone may have been given to another one.
            reference, row = self._by_address.get(tensor.data_ptr(), (None, None))
            if reference is not None and reference() is not None:
                return row
        recent = [row for row in self._fetched if row[STEP] == self.recorder.step or row[SEQ] not in self._linked]
        same_size = [row for row in recent if row[SIZE] == inputs[0].shape[0]]
        waiting = [row for row in same_size if row[SEQ] not in self._linked]
        if waiting:
            return waiting[0]
        return same_size[-1] if same_size else None

    def note_targets(self, target: Tensor) -> None:
        """A loss was computed against these targets: they belong to the current batch if it does not know its own."""
        row = self._current
        if row is None or row[TARGETS] is not None or row[STEP] != self.recorder.step:
            return
        if target.dim() > 0 and target.shape[0] == row[SIZE] and is_plain(target) and target.device.type == "cpu":
            row[TARGETS], row[TARGET_KIND] = _targets_of(target)


def _loader_row(number: int, loader: DataLoader[Any], built: int | None, settings: dict[str, Any]) -> tuple[Any, ...]:
    dataset = loader.dataset
    try:
        length = len(dataset)  # type: ignore[arg-type]
    except TypeError:
        length = None
    sampler = type(loader.sampler).__name__ if hasattr(loader, "sampler") else None
    return number, type(dataset).__name__, length, loader.batch_size, sampler, built, to_json(settings)


def _loader_settings(loader: DataLoader[Any]) -> dict[str, Any]:
    sampler = getattr(loader, "sampler", None)
    scalars = {
        name: value
        for name, value in getattr(sampler, "__dict__", {}).items()
        if not name.startswith("_") and isinstance(value, bool | int | float | str)
    }
    return {
        "drop_last": loader.drop_last,
        "workers": loader.num_workers,
        "batch_sampler": type(loader.batch_sampler).__name__,
        "sampler_settings": scalars,
        "weighted": hasattr(sampler, "weights"),
        "generator": loader.generator is not None,
        "worker_init_fn": loader.worker_init_fn is not None,
    }


def _fields_of(batch: Any, prefix: str = "") -> list[tuple[str, Tensor]]:
    """The tensors of a batch with the names or positions under which the script finds them."""
    if isinstance(batch, Tensor):
        return [(prefix or "0", batch)] if has_shape(batch) else []
    if isinstance(batch, list | tuple) and not prefix and all(isinstance(part, Tensor) and has_shape(part) for part in batch):
        return [(str(place), part) for place, part in enumerate(batch)]
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


def _read(layout: _Layout, fields: list[tuple[str, Tensor]]) -> tuple[bytes, bytes | None, str | None, str | None]:
    """The fingerprints of a batch, its targets and their kind, and what is missing in it."""
    arrays = {place: _array(fields[place][1]) for place in layout.read}
    prints = fingerprints([arrays[place] for place in layout.inputs]) if layout.inputs and layout.size else b""
    targets, kind = _targets_of(fields[layout.target][1]) if layout.target is not None else (None, None)
    missing = [part for place in layout.floats if (part := nonfinite(*fields[place], arrays[place])) is not None]
    return prints, targets, kind, to_json(missing) if missing else None


def _targets_of(target: Tensor) -> tuple[bytes | None, str | None]:
    """One number per sample, when the targets are that simple."""
    try:
        values = memory_of(target)
    except (BufferError, RuntimeError):
        values = memory_of(values_of(target).to("cpu", torch.complex128 if target.is_complex() else torch.float64))
    return targets_of(values)


def _array(tensor: Tensor) -> Any:
    try:
        return memory_of(tensor)
    except (BufferError, RuntimeError):
        # Part of a graph, or a dtype that numpy does not know: its bytes tell samples apart just as well.
        values = values_of(tensor).contiguous()
        return memory_of(values.reshape(values.shape[0] if values.dim() else 1, -1).view(torch.uint8))
