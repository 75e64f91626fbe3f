"""Calls of cells: the root calls of every step, and on sampled steps every cell inside of them."""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import suppress
from threading import get_ident
from typing import Any

from mindspore import Tensor, context, nn, ops
from mindspore.ops.composite import base

from trueline.adapters.base import guarded
from trueline.adapters.mindspore.backward import BackwardWatch
from trueline.adapters.mindspore.clipping import ClipWatch
from trueline.adapters.mindspore.collectives import CollectiveWatch
from trueline.adapters.mindspore.compiled.steps import CompiledWatch
from trueline.adapters.mindspore.data import BatchWatch
from trueline.adapters.mindspore.exact import ExactReplay
from trueline.adapters.mindspore.graph import OpTrace
from trueline.adapters.mindspore.kinds import (
    OPTIMIZERS,
    drops_units,
    is_wrapper,
    kind_of,
    parts_of,
    tensors_of,
    uses_batch_statistics,
)
from trueline.adapters.mindspore.losses import LossWatch
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.precision import ScalerWatch
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.scores import ScoreWatch
from trueline.adapters.mindspore.tensors import tensors_in
from trueline.adapters.shared.modules import ModuleWatch as SharedModuleWatch
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.alignment import Alignment
from trueline.recorder.identity import ByIdentity
from trueline.recorder.patches import Patches

_MOST_CALLS_PER_STEP = 4
# What a class of cells is to the watch of calls; all others are cells like any.
_ANY, _CLIP, _REDUCER, _LOSS_CELL, _STEP = range(5)
# Positions in the rows of the table `root_call`.
_MODULE, _TRAINING, _GRAD, _LOSS = 2, 4, 5, 6


class ModuleWatch(SharedModuleWatch):
    """Watches `nn.Cell.__call__` at the class, so that nothing is attached to any cell."""

    def __init__(
        self,
        recorder: Recorder,
        registry: Registry,
        batches: BatchWatch,
        scores: ScoreWatch,
        trace: OpTrace,
        progress: StepProgress,
        backward: BackwardWatch,
        optimizers: OptimizerWatch,
        losses: LossWatch,
        compiled: CompiledWatch,
        scalers: ScalerWatch,
        clips: ClipWatch,
        collectives: CollectiveWatch,
    ) -> None:
        super().__init__(recorder, registry)
        self._exact = ExactReplay(recorder)
        self._registry = registry
        self._batches = batches
        self._scores = scores
        self._trace = trace
        self._progress = progress
        self._backward = backward
        self._optimizers = optimizers
        self._losses = losses
        self._compiled = compiled
        self._scalers = scalers
        self._clips = clips
        self._collectives = collectives
        self._inside = False
        self._detailed = False
        self._root_training = False
        self._kinds: dict[type, int] = {}
        self._calls: dict[int, int] = {}
        self._calls_step = -1
        self._last_output: tuple[Tensor, tuple[Any, ...]] | None = None
        self._wrappers: ByIdentity = ByIdentity()
        self._mode_sensitive: ByIdentity = ByIdentity()
        self._graphless_outputs: deque[tuple[int, weakref.ref[Tensor]]] = deque(maxlen=16)
        self._call: Any = nn.Cell.__call__
        compiled.describe = self._root_row
        compiled.inside_root = lambda: self._inside

    def install(self, patches: Patches) -> None:
        original = self._call = nn.Cell.__call__
        watch, kinds = self, self._kinds

        def __call__(cell: nn.Cell, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it replaces that method
            recorder = watch.recorder
            if not recorder.active or recorder.busy or watch._progress.inside_optimizer:
                return original(cell, *args, **kwargs)
            kind = kinds.get(type(cell))
            if kind is None:
                kind = kinds[type(cell)] = watch._kind_of(cell)
            if kind == _CLIP:
                return watch._clips.cell_called(cell, original, args, kwargs)
            if kind == _REDUCER:
                return watch._collectives.reducer_called(cell, original, args, kwargs)
            if kind == _LOSS_CELL:
                return watch._losses.cell_called(cell, original, args, kwargs)
            if watch._inside:
                if watch._detailed:
                    return watch._inner_call(cell, args, kwargs)
                return original(cell, *args, **kwargs)
            if watch._progress.inside_backward or not watch._is_training_thread():
                # A call inside of the backward pass is recomputation: the forward pass over again.
                return original(cell, *args, **kwargs)
            if kind == _STEP:
                return watch._scalers.around(watch._outer_call, cell, args, kwargs)
            return watch._outer_call(cell, args, kwargs)

        patches.replace(nn.Cell, "__call__", __call__)
        if self.recorder.alignment is not None:
            patches.replace(base, "_pynative_forward_run", self._aligned_forward(base._pynative_forward_run))
        self._install_construction(patches, nn.Cell)
        self._install_mode(patches, nn.Cell, "set_train")

    def _kind_of(self, cell: nn.Cell) -> int:
        """Told by the class: every call of every cell asks for it."""
        if isinstance(cell, nn.ClipByNorm):
            return _CLIP
        if isinstance(cell, nn.DistributedGradReducer):
            return _REDUCER
        if self._losses.is_loss(cell):
            return _LOSS_CELL
        return _STEP if isinstance(cell, nn.TrainOneStepCell) else _ANY

    def _outer_call(self, cell: nn.Cell, args: Any, kwargs: Any) -> Any:
        """A call from outside of any cell but those that put a step around a model."""
        if context._get_mode() == context.GRAPH_MODE:
            return self._compiled.cell_called(cell, self._call, args, kwargs)
        if isinstance(cell, OPTIMIZERS):
            return self._optimizer_call(cell, args, kwargs)
        if cell.requires_grad and not self._backward.depth:
            # The forward pass of a gradient function that is called after it with the same arguments.
            return self._backward.forward(self._eager_call, cell, args, kwargs)
        return self._eager_call(cell, args, kwargs)

    def install_visible(self, patches: Patches) -> None:
        """What compiled code may refer to."""
        patches.replace(ops, "dropout", self._watched_dropout(ops.dropout))
        patches.replace(ops.function.nn_func, "dropout", self._watched_dropout(ops.function.nn_func.dropout))

    def _eager_call(self, cell: nn.Cell, args: Any, kwargs: Any) -> Any:
        if self._is_wrapper(cell):
            return self._call(cell, *args, **kwargs)
        return self._root_call(cell, args, kwargs)

    @guarded
    def _is_wrapper(self, cell: nn.Cell) -> bool:
        known = self._wrappers.get(cell)
        if known is None:
            known = self._wrappers[cell] = is_wrapper(cell)
        return bool(known)

    # Modes and functional dropout

    def _subject_of(self, module: nn.Cell) -> nn.Cell:
        """The model, where the mode of what trains it is set."""
        return self._compiled.model_in(module) or module

    def _watched_dropout(self, original: Any) -> Any:
        def watched(input: Any, p: float = 0.5, training: bool = True, *args: Any, **kwargs: Any) -> Any:  # noqa: A002, FBT001, FBT002
            if training and p > 0 and self._inside and not self._root_training:
                self._dropout_forced()
            if self.recorder.alignment is not None:
                return original(input, p, False, *args, **kwargs)  # noqa: FBT003 - MindSpore's own signature
            return original(input, p, training, *args, **kwargs)

        return watched

    # Optimizers

    def _optimizer_call(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        gradients = args[0] if args else next(iter(kwargs.values()), ())
        pending = self._optimizers.before_step(optimizer, gradients)
        try:
            result = self._call(optimizer, *args, **kwargs)
        except BaseException:
            self._progress.inside_optimizer = False
            raise
        self._optimizers.after_step(optimizer, pending)
        self._exact.settle()
        return result

    # Root calls

    def _root_call(self, cell: nn.Cell, args: Any, kwargs: Any) -> Any:
        if self.recorder.alignment is not None and self._backward.depth:
            args, kwargs = self._aligned(self.recorder.alignment, args, kwargs)
        row = self._root_row(cell, args, kwargs, grad=self._backward.depth > 0)
        if row is None:
            return self._call(cell, *args, **kwargs)
        self._inside = True
        try:
            output = self._inner_call(cell, args, kwargs) if self._detailed else self._call(cell, *args, **kwargs)
        finally:
            self._inside = False
            self._detailed = False
        if self.recorder.sampled or not row[_GRAD] or not row[_TRAINING]:
            self._leave_root(cell, row, output)
        return output

    def _aligned_forward(self, original: Any) -> Any:
        def watched(function: Any, *args: Any, **kwargs: Any) -> Any:
            # The backward pass is found by the arguments of the forward pass, where a cell is differentiated by itself. Functions
            # are given the targets too.
            alignment = self.recorder.alignment
            if alignment is not None and (isinstance(function, nn.Cell) or not self._backward.depth):
                args, kwargs = self._aligned(alignment, args, kwargs)
            return original(function, *args, **kwargs)

        return watched

    def _aligned(self, alignment: Alignment, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments with the batch of the run that this one is aligned to."""
        new = self._batches.aligned_inputs(alignment, tensors_in((args, kwargs)))
        if not new:
            return args, kwargs
        return tuple(new.get(id(each), each) for each in args), {name: new.get(id(each), each) for name, each in kwargs.items()}

    @guarded
    def _root_row(self, cell: nn.Cell, args: Any, kwargs: Any, *, grad: bool, seen: bool = True) -> list[Any] | None:
        """Record a root call. `seen`: whether what happens inside of it can be watched."""
        recorder = self.recorder
        self._optimizers.settle()
        if grad and recorder.step and self._registry.module_id(cell) is None and tensors_of(cell):
            recorder.look_closely()
        number = self._registry.root_id(cell)
        if recorder.sampled:
            self._registry.refresh(number)
        inputs = tensors_in((args, kwargs) if kwargs else args)
        batch = self._batches.batch_of(inputs, number)
        if recorder.alignment is not None:
            self._batches.went_in(batch, training=grad)
        dropouts, norms = self._mode_sensitive_parts(cell)
        training = self._root_training = bool(cell.training)
        row: list[Any] = [
            recorder.next_seq(), recorder.step, number, recorder.location(), int(training), int(grad), 0,
            len(dropouts), sum(part.training for part in dropouts), len(norms), sum(part.training for part in norms),
            batch, self._source_of(inputs),
        ]  # fmt: skip
        recorder.row("root_call", row)
        evaluating = self._batches.evaluating = not grad
        if recorder.sampled or evaluating:
            self._batches.fields.at_call(row[0], number, inputs, evaluating=evaluating)
        self._detailed = recorder.sampled and grad and seen
        if self._detailed:
            self._registry.mark_called(number)
            if self._calls_step != recorder.step:
                self._calls_step = recorder.step
                self._calls.clear()
            if recorder.traced and self._backward.depth:
                self._trace.begin([*self._batches.traced_tensors, *((batch, tensor) for tensor in inputs)])
        return row

    def _mode_sensitive_parts(self, cell: nn.Cell) -> tuple[list[nn.Cell], list[nn.Cell]]:
        known = self._mode_sensitive.get(cell)
        if known is None or self.recorder.sampled:
            parts = parts_of(cell)
            known = ([part for part in parts if drops_units(part)], [part for part in parts if uses_batch_statistics(part)])
            self._mode_sensitive[cell] = known
        return known  # type: ignore[no-any-return]

    def _source_of(self, inputs: list[Tensor]) -> int | None:
        """The earlier call without gradients whose output goes in."""
        seq: int
        for seq, reference in reversed(self._graphless_outputs):
            output = reference()
            if output is not None and any(tensor is output for tensor in inputs):
                return seq
        return None

    @guarded
    def _leave_root(self, cell: nn.Cell, row: list[Any], output: Any) -> None:
        outputs = tensors_in(output)
        if not row[_GRAD]:
            for tensor in outputs[:2]:
                self._graphless_outputs.append((row[0], weakref.ref(tensor)))
        elif len(outputs) == 1 and not outputs[0].shape and not tensors_of(cell):
            row[_LOSS] = 1
        if not row[_GRAD] and not row[_LOSS] and outputs:
            self._scores.at_output(outputs[0])
        self._last_output = None
        if self.recorder.step == 0:
            # Lazy cells have got their parameters in this call.
            self._registry.refresh(row[_MODULE])

    # Calls inside of a root call, on sampled steps

    def _inner_call(self, cell: nn.Cell, args: Any, kwargs: Any) -> Any:
        number = self._enter_inner(cell)
        if self.recorder.alignment is not None and number is not None:
            self._keep_inputs(number, (args, kwargs))
        if number is None:
            return self._call(cell, *args, **kwargs)
        exact = self._exact.before(cell, kind_of(cell), args, kwargs) if self.recorder.alignment is not None else None
        call = self._calls.get(number, 0)
        try:
            output = self._call(cell, *args, **kwargs)
        finally:
            self._trace.leave_module()
        if exact is not None:
            self._exact.after(self._registry.path_of("output", number), call, exact, output)
        self._leave_inner(number, output)
        return output

    @guarded
    def _enter_inner(self, cell: nn.Cell) -> int | None:
        if get_ident() != self._thread:
            return None
        number: int | None = self._registry.module_id(cell)
        if number is None and tensors_of(cell) and not is_wrapper(cell):
            # Kept where cells are not looked for, as in a plain list.
            number = self._registry.root_id(cell)
        if number is not None:
            self._registry.mark_called(number)
            self._trace.enter_module(number)
        return number

    @guarded
    def _keep_inputs(self, number: int, given: Any) -> None:
        call = self._calls.get(number, 0)
        if self.recorder.keeps_tensors and call < _MOST_CALLS_PER_STEP:
            self._registry.keep_inputs(number, call, tensors_in(given, most=4))

    @guarded
    def _leave_inner(self, number: int, output: Any) -> None:
        call = self._calls.get(number, 0)
        self._calls[number] = call + 1
        if call >= _MOST_CALLS_PER_STEP:
            return
        for place, tensor in enumerate(tensors_in(output, most=4)):
            if tensor.is_floating_point():
                self._measure(number, call * 4 + place, tensor)

    def _measure(self, number: int, position: int, tensor: Tensor) -> None:
        recorder = self.recorder
        if self._last_output is not None and self._last_output[0] is tensor:
            row = self._last_output[1]
            row = (row[0], row[1], number, position, *row[4:])
            recorder.row("tensor_stat", row)
        else:
            row = self._registry.stat(recorder.step, "output", number, position, tensor)
        self._last_output = (tensor, row)
        if self._backward.depth:
            step = recorder.step
            # A tensor that no gradient will reach, as behind stop_gradient, refuses the hook.
            with suppress(RuntimeError):
                tensor.register_hook(lambda gradient: self._gradient_arrived(step, number, position, gradient))

    @guarded
    def _gradient_arrived(self, step: int, number: int, position: int, gradient: Tensor | None) -> None:
        if step == self.recorder.step and gradient is not None:
            self._registry.stat(step, "output_grad", number, position, gradient)
