"""Batches: what dataset iterators yield, what is handed to root cells directly, and the targets that go with them."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor
from mindspore.dataset.engine.datasets import Dataset
from mindspore.dataset.engine.iterators import Iterator
from numpy.typing import NDArray

from trueline.adapters.base import guarded
from trueline.adapters.mindspore.fields import nonfinite, readable
from trueline.adapters.mindspore.pipelines import described, operations_of, source_of
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.samples import row_of
from trueline.adapters.mindspore.tensors import array_of, dtype_name
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

# Tensors of batches that a call may still be fed with, and how many batches an iterator may be ahead when only time can tell.
_REMEMBERED = 256
_PREFETCHED = 3
_READABLE = "iubf"


class _Source:
    """One iterator: its loader's number, the epoch, and the position in it. The first batch after an end starts an epoch."""

    def __init__(self, loader: int) -> None:
        self.loader = loader
        self.epoch = -1
        self.position = 0


class BatchWatch(CurrentBatch):
    """Watches dataset iterators and the tensors that enter root cells."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._loaders: ByIdentity = ByIdentity()
        self._lines: ByIdentity = ByIdentity()
        self._loader_count = 0
        self._datasets: ByIdentity = ByIdentity()
        self._dataset_count = 0
        self._epochs: dict[int, int] = {}
        self._sources: ByIdentity = ByIdentity()
        self._layouts: dict[int | None, Any] = {}
        self._fetched: deque[list[Any]] = deque(maxlen=_PREFETCHED)
        self._by_tensor: OrderedDict[int, tuple[weakref.ref[Tensor], list[Any]]] = OrderedDict()
        self._linked: set[int] = set()
        self._direct: Handed | None = None
        self.fields = FieldLook(recorder, readable)
        self.samples = SampleKeeper(recorder, row_of)
        # Whether the last root call was made outside of gradient functions or on a model in eval mode.
        self.evaluating = False
        self._aligns = False
        # In aligned runs: the tensors of a step that no iterator gave, and what took their place.
        self._replaced: tuple[int, list[tuple[Any, Any]]] = (-1, [])
        self.traced_tensors: list[tuple[int, Tensor]] = []

    def install(self, patches: Patches) -> None:
        patches.replace(Dataset, "__init__", self._watched_node())
        patches.replace(Iterator, "__init__", self._watched_construction())
        patches.replace(Iterator, "__next__", self._watched_next())

    def _watched_node(self) -> Any:
        original: Any = Dataset.__init__
        watch = self

        def __init__(node: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(node, *args, **kwargs)
            if watch.recorder.active:
                watch._node_built(node)

        return __init__

    @guarded
    def _node_built(self, node: Any) -> None:
        self._lines[node] = self.recorder.location()

    def _watched_construction(self) -> Any:
        original: Any = Iterator.__init__
        watch = self

        def __init__(iterator: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(iterator, dataset, *args, **kwargs)
            watch._iterator_built(iterator, dataset)

        return __init__

    @guarded
    def _iterator_built(self, iterator: Any, dataset: Any) -> None:
        number = self._loaders.get(dataset)
        if number is None:
            self._loader_count += 1
            number = self._loaders[dataset] = self._loader_count
            told = described(dataset)
            lines = [(name, self._lines.get(node)) for name, node in operations_of(dataset)]
            settings = {**told.settings, "dataset_object": self._dataset_number(source_of(dataset)), "lines": lines}
            built = self.recorder.location() if lines[0][1] is None else lines[0][1]
            self.recorder.row("loader", (number, told.name, told.length, told.batch_size, told.sampler, built, to_json(settings)))
        self._sources[iterator] = _Source(number)

    def _dataset_number(self, source: Any) -> int:
        """Tells loaders of one dataset from loaders of several."""
        number = self._datasets.get(source)
        if number is None:
            self._dataset_count += 1
            number = self._datasets[source] = self._dataset_count
        return int(number)

    def _watched_next(self) -> Any:
        original: Any = Iterator.__next__
        watch = self

        def __next__(iterator: Any) -> Any:  # noqa: N807 - it replaces that method
            if not watch.recorder.active:
                return original(iterator)
            started = perf_counter()
            try:
                batch = original(iterator)
            except StopIteration:
                watch._epoch_ended(iterator)
                raise
            wait = perf_counter() - started
            if watch.recorder.alignment is not None:
                batch = watch._align_batch(watch.recorder.alignment, iterator, batch) or batch
            watch._batch_fetched(iterator, batch, wait)
            return batch

        return __next__

    def _epoch_ended(self, iterator: Any) -> None:
        source = self._sources.get(iterator)
        if source is not None:
            source.position = 0

    @guarded
    def _align_batch(self, alignment: Alignment, iterator: Any, batch: Any) -> Any:
        """The batch with the tensors of the run that this one is aligned to; None where they stay."""
        source = self._sources.get(iterator)
        self._aligns = source is not None and self._trains_with(source.loader)
        if not self._aligns:
            return None
        fields = _fields_of(batch)
        replaced = self._replacement(alignment, [value for _, value in fields])
        by_field = {name: value for (name, _), value in zip(fields, replaced or [], strict=False)}
        if not by_field:
            return None
        if isinstance(batch, Mapping):
            return {name: by_field.get(str(name), value) for name, value in batch.items()}
        return [by_field.get(str(place), value) for place, value in enumerate(batch)]

    def _replacement(self, alignment: Alignment, tensors: list[Any], *, by_hand: bool = False) -> list[Any] | None:
        """What the reference was fed with in the place of these; None where they stay."""
        replaced = alignment.fetched([array_of(tensor) for tensor in tensors], step=self.recorder.step, by_hand=by_hand)
        return None if replaced is None else [_like(tensor, values) for tensor, values in zip(tensors, replaced, strict=True)]

    @guarded
    def aligned_inputs(self, alignment: Alignment, inputs: list[Tensor]) -> dict[int, Tensor] | None:
        """What takes the place of tensors that no iterator gave, by their identity."""
        sized = [tensor for tensor in inputs if len(tensor.shape) > 0 and not isinstance(tensor, Parameter)]
        step, known = self._replaced
        if step == self.recorder.step and any(tensor is old for tensor in sized for old, _ in known):
            return {id(old): new for old, new in known}
        if not sized or any(tensor is new for tensor in sized for _, new in known) or self._fetched_row(sized) is not None:
            return None
        if not alignment.fits([array_of(tensor) for tensor in sized], self.recorder.step):
            # Something else than a batch is among them: what enters the model may do.
            return None
        replaced = self._replacement(alignment, sized, by_hand=True)
        # Kept: a step may hand the same tensors to the forward pass, to the gradient function, and to the loss.
        self._replaced = (self.recorder.step, list(zip(sized, replaced or sized, strict=True)))
        return None if replaced is None else {id(old): new for old, new in self._replaced[1]}

    @guarded
    def aligned_target(self, alignment: Alignment, target: Any) -> Tensor | None:
        """And of the targets that belong to them."""
        row = self._current
        if row is None or row[LOADER] is not None or not isinstance(target, Tensor) or not target.shape:
            return None
        if any(target is new for _, new in self._replaced[1]):
            return None
        values = alignment.target(array_of(target))
        return None if values is None else _like(target, values)

    @guarded
    def _batch_fetched(self, iterator: Any, batch: Any, wait: float) -> None:
        self.recorder.wait += wait
        source = self._sources.get(iterator)
        if source is None:
            return
        number = source.loader
        if source.position == 0:
            source.epoch = self._epochs[number] = self._epochs.get(number, -1) + 1
        fields = _fields_of(batch)
        row = self._row(number, source.epoch, source.position, wait, fields)
        source.position += 1
        if row is not None:
            tensors = [tensor for _, tensor in fields if isinstance(tensor, Tensor)]
            self._fetched.append(row)
            if self._aligns:
                self._aligned = (row[SEQ], number)
            self._remember(row, tensors if row[TARGETS] is None else tensors[:-1] or tensors)
            self.traced_tensors = [(row[SEQ], tensor) for tensor in tensors] if self.recorder.traced else []
            self._direct = None

    def _remember(self, row: list[Any], tensors: list[Tensor]) -> None:
        for tensor in tensors:
            self._by_tensor[id(tensor)] = (weakref.ref(tensor), row)
        while len(self._by_tensor) > _REMEMBERED:
            self._by_tensor.popitem(last=False)

    def _row(
        self, loader: int | None, epoch: int | None, position: int | None, wait: float, fields: list[tuple[str, Any]]
    ) -> list[Any] | None:
        recorder = self.recorder
        arrays = [(name, array_of(tensor)) for name, tensor in fields]
        layout = [(name, array.shape, array.dtype) for name, array in arrays]
        told = None
        if self._layouts.get(loader) != layout:
            self._layouts[loader] = layout
            told = to_json([{"name": name, "shape": list(part.shape), "dtype": dtype_name(part)} for name, part in fields])
        sized = [(name, array) for name, array in arrays if array.ndim > 0]
        if not sized:
            return None
        size = sized[0][1].shape[0]
        sized = [(name, array) for name, array in sized if array.shape[0] == size]
        target = target_field([(name, array.shape) for name, array in sized]) if loader is not None else None
        inputs = [array for name, array in sized if name != target]
        targets, kind = next((targets_of(array) for name, array in sized if name == target), (None, None))
        missing = [part for name, array in arrays if (part := nonfinite(name, array)) is not None]
        row: list[Any] = [
            recorder.next_seq(), recorder.step, loader, epoch, position, wait, size,
            fingerprints([np.ascontiguousarray(array) for array in inputs]) if inputs and size else b"", targets, kind, told,
            to_json(missing) if missing else None,
        ]  # fmt: skip
        recorder.row("batch", row)
        self.samples.batch(row[SEQ], inputs[:1], row[7], held=True)
        if loader is not None:
            self.fields.at_batch(row[SEQ], loader, fields)
        if recorder.sampled:
            for place, (_, array) in enumerate(arrays):
                if array.dtype.kind in "iuf":
                    self._registry.stat(recorder.step, "batch", loader or 0, place, array)
        return row

    def batch_of(self, inputs: list[Tensor], root: int) -> int | None:
        """The batch that a root call is fed with: an iterator's, found by identity or by time, else the inputs."""
        sized = [tensor for tensor in inputs if len(tensor.shape) > 0]
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
            reference, row = self._by_tensor.get(id(tensor), (None, None))
            if reference is not None and reference() is tensor:
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
        if len(target.shape) > 0 and target.shape[0] == row[SIZE]:
            row[TARGETS], row[TARGET_KIND] = targets_of(array_of(target))


def _fields_of(batch: Any) -> list[tuple[str, Any]]:
    """The tensors or arrays of a batch with the columns or positions under which the script finds them."""
    items: Any = batch.items() if isinstance(batch, Mapping) else enumerate(batch)
    return [(str(name), value) for name, value in items if isinstance(value, Tensor | np.ndarray) and _has_numbers(value)]


def _like(old: Any, values: NDArray[Any]) -> Any:
    return Tensor(values, old.dtype) if isinstance(old, Tensor) else values


def _has_numbers(value: Tensor | NDArray[Any]) -> bool:
    return isinstance(value, Tensor) or value.dtype.kind in _READABLE
