"""Compiled steps: graph mode, and functions under `ms.jit`. What happens inside of a compiled graph cannot be watched.

A call of compiled code is looked at from outside: what goes in, what comes out, the model and the optimizers it runs, and what
it does to the parameters. Its operations are read from what the compiler writes when it compiles (compiled_trace.py). What is
not seen this way is declared in the run, so that checks do not take silence for a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import msgspec
import numpy as np
from mindspore import Tensor, nn
from mindspore.graph import api

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.compiled_trace import CompiledTrace
from trueline.adapters.mindspore.ir_files import remove, written_graphs
from trueline.adapters.mindspore.kinds import is_wrapper, kind_of, parts_of
from trueline.adapters.mindspore.optimizer import OPTIMIZERS, OptimizerWatch
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import LateNumber, array_of, tensors_in
from trueline.adapters.shared.steps import StepProgress
from trueline.record import Recorder, to_json
from trueline.record.patches import Patches

# What is never seen of the inside, what the compiler tells, and what it tells of losses that values are not needed to judge.
_INSIDE = ("layers", "scores", "dropout")
_OF_GRAPH = ("operations", "freezing")
_OF_LOSSES = ("losses",)
_OF_STEP = ("gradients", "order")
# How far cells are looked for: a step function refers to a gradient function, that to the forward function, that to the model.
_DEEPEST = 5
# Position in the rows of the table `root_call`.
_BATCH = 11


class _Compiled:
    """What is known of one compiled thing. `backward`: what its operations tell of the backward pass."""

    def __init__(self) -> None:
        self.unread: tuple[str, ...] = (*_OF_GRAPH, *_OF_LOSSES)
        self.cut_off: set[int] = set()
        self.reached: set[int] = set()
        self.backward: dict[str, Any] = {}


class _Call(msgspec.Struct):
    """One call: the compiled thing, its model and optimizers, the cell that was compiled or the cells that a function refers
    to, and what was noted before."""

    thing: _Compiled
    model: nn.Cell | None
    held: list[Any]
    root: nn.Cell | None
    cells: list[nn.Cell]
    trains: bool
    batch: int | None = None
    pending: list[Any] = []


class CompiledWatch(Watch):
    """Told of calls of cells in graph mode; watches calls of functions under `ms.jit`."""

    def __init__(
        self,
        recorder: Recorder,
        registry: Registry,
        optimizers: OptimizerWatch,
        progress: StepProgress,
        announce: Callable[[str], None],
    ) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._optimizers = optimizers
        self._progress = progress
        self._announce = announce
        self._inside = False
        self._unseen: set[str] = set()
        self._trace = CompiledTrace(recorder, registry)
        self._things: dict[Any, _Compiled] = {}
        self._held: dict[CodeType, tuple[nn.Cell | None, list[Any], list[nn.Cell]]] = {}
        # Whether steps may be left out because of their gradients: told by a cell that does so, or by one that was.
        self.may_skip = False
        # Given by the watch of cells: how a root call is recorded.
        self.describe: Any = None

    def install(self, patches: Patches) -> None:
        original = api._JitExecutor.__call__
        watch = self

        def __call__(executor: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it replaces that method
            recorder = watch.recorder
            busy = recorder.busy or watch._inside or watch._progress.inside_optimizer or watch._progress.inside_backward
            if busy or not recorder.active:
                return original(executor, *args, **kwargs)
            return watch._function_called(executor, original, args, kwargs)

        patches.replace(api._JitExecutor, "__call__", __call__)

    def declare(self, *what: str) -> None:
        """What cannot be seen of this run, told when it changes: some of it the compiler tells when a call is over."""
        unread = {part for thing in self._things.values() for part in thing.unread}
        unseen = (self._unseen - {*_OF_GRAPH, *_OF_LOSSES}) | set(what) | unread
        if unseen != self._unseen:
            self._unseen = unseen
            self.recorder.row("meta", ("unseen", to_json(sorted(self._unseen))))

    # Cells in graph mode

    def cell_called(self, cell: nn.Cell, original: Any, args: Any, kwargs: Any) -> Any:
        if self._inside:
            return original(cell, *args, **kwargs)
        if isinstance(cell, OPTIMIZERS):
            gradients = args[0] if args else next(iter(kwargs.values()), ())
            pending = self._optimizers.before_step(cell, gradients)
            try:
                return original(cell, *args, **kwargs)
            finally:
                self._optimizers.after_step(cell, pending)
        held = [part for part in parts_of(cell) if isinstance(part, OPTIMIZERS)]
        model = self.model_in(cell)
        self.may_skip = self.may_skip or isinstance(cell, nn.TrainOneStepWithLossScaleCell)
        call = _Call(_Compiled(), model, held, cell, [cell], bool(held))
        return self._run(original, (cell, *args), kwargs, args, call, id(cell))

    def model_in(self, cell: nn.Cell) -> nn.Cell | None:
        """The model that a cell puts a step, a loss or an evaluation around; the cell itself where it does no such thing."""
        if not is_wrapper(cell):
            return None if kind_of(cell) == "loss" else cell
        found = [self.model_in(part) for part in cell._cells.values() if not isinstance(part, OPTIMIZERS)]
        models = [model for model in found if model is not None]
        return max(models, key=lambda model: len(parts_of(model)), default=None)

    # Functions under `ms.jit`

    def _function_called(self, executor: Any, original: Any, args: Any, kwargs: Any) -> Any:
        model, held, cells = self._cells_of(executor) or (None, [], [])
        name = getattr(executor.fn, "__qualname__", "")
        trains = bool(held) or name.endswith("after_grad")
        root = executor.obj if isinstance(executor.obj, nn.Cell) else None
        call = _Call(_Compiled(), model, held, root, cells, trains)
        return self._run(original, (executor, *args), kwargs, args, call, (getattr(executor.fn, "__code__", None), id(model)))

    @guarded
    def _cells_of(self, executor: Any) -> tuple[nn.Cell | None, list[Any], list[nn.Cell]]:
        """The model and the optimizers that a function refers to, and all its cells."""
        function = executor.fn
        code = getattr(function, "__code__", None)
        known = self._held.get(code) if code is not None and executor.obj is None else None
        if known is not None:
            return known
        cells = list(_cells_behind([function, executor.obj], _DEEPEST, set()))
        held = [cell for cell in cells if isinstance(cell, OPTIMIZERS)]
        held += [part for cell in cells for part in parts_of(cell) if isinstance(part, OPTIMIZERS) and part not in held]
        models = [model for cell in cells if (model := self.model_in(cell)) is not None]
        found = (max(models, key=lambda model: len(parts_of(model)), default=None), held, cells)
        if code is not None:
            self._held[code] = found
        return found

    def _run(self, original: Any, called: Any, kwargs: Any, inputs: Any, call: _Call, key: Any) -> Any:
        self._before(call, key, inputs, kwargs)
        self._inside = True
        try:
            with written_graphs(self.recorder.scratch if self._is_read(call) else None) as files:
                output = original(*called, **kwargs)
        finally:
            self._inside = False
            self._progress.inside_optimizer = False
        self._after(output, call, files)
        return output

    def _is_read(self, call: _Call) -> bool:
        return call.trains and self.recorder.active and self.recorder.traced and bool(call.thing.unread)

    @guarded
    def _before(self, call: _Call, key: Any, inputs: Any, kwargs: Any) -> None:
        if call.trains:
            call.thing = self._things.setdefault(key, call.thing)
        if call.model is not None and self.describe is not None:
            self._announce("compiled")
            row = self.describe(call.model, inputs, kwargs, grad=call.trains, seen=False)
            call.batch = None if row is None else row[_BATCH]
            if call.trains:
                self.declare(*_INSIDE)
        if not call.held:
            return
        self.declare(*_OF_STEP)
        # Reading its count waits for the device: where the model cannot leave a step out, on sampled steps only.
        counted = self.recorder.sampled or self.may_skip
        counts = [_steps_of(optimizer) if counted else None for optimizer in call.held]
        call.pending = [counts, [self._optimizers.before_step(optimizer, None) for optimizer in call.held]]

    @guarded
    def _after(self, output: Any, call: _Call, files: list[Path]) -> None:
        recorder, progress = self.recorder, self._progress
        if not call.trains:
            return
        origin = self._read(call, files)
        losses = [tensor for tensor in tensors_in(output) if math.prod(tensor.shape) == 1 and tensor.is_floating_point()]
        if losses:
            progress.loss = LateNumber(losses[0])
        progress.backwards += 1
        known = float(progress.loss) if recorder.sampled and losses else None
        detail: dict[str, Any] | None = None
        if recorder.sampled:
            detail = {"of": origin, "compiled": True, "carried": [], **call.thing.backward}
        progress.last_backward = recorder.event("backward", value=known, detail=detail, location=recorder.location())
        self._registry.cut_off = set(call.thing.cut_off)
        if not call.pending:
            self._optimizers.note_fresh(tensors_in(output, most=1 << 20))
            return
        for optimizer, count, step in zip(call.held, *call.pending, strict=True):
            if step is None or (count is not None and count >= 0 and _steps_of(optimizer) == count):
                self.may_skip = True
                self._optimizers.skipped(optimizer)
            else:
                self._note_gradients(optimizer, call.thing)
                self._optimizers.after_step(optimizer, step)

    # What the compiler tells

    def _read(self, call: _Call, files: list[Path]) -> str | None:
        """Record the operations of what was compiled in a call; gives the reference of the loss."""
        if not files:
            return None
        thing, trace = call.thing, self._trace
        try:
            read = False
            for path in files:
                with path.open(encoding="utf-8", errors="replace") as lines:
                    read = trace.read(lines, call.batch, call.root, call.cells)
                if read:
                    break
        finally:
            remove(self.recorder.scratch)
        if not read or trace.root is None or not trace.complete:
            return None
        thing.unread = () if trace.losses_judged else _OF_LOSSES
        trainable = {number for number, parameter in self._registry.parameters() if parameter.requires_grad}
        thing.reached = trace.reached
        thing.cut_off = trainable - trace.reached if trace.reached else set()
        function = trace.root_origin if trace.root.trained else None
        thing.backward = {"shape": list(trace.root.shape), "leaf": False, "create_graph": False, "function": function}
        self.declare()
        return trace.root_origin

    def _note_gradients(self, optimizer: Any, thing: _Compiled) -> None:
        """Tell parameters that no gradient gets to from those that one gets to and that the step changed, or cannot change."""
        self._optimizers.count_without_gradient(optimizer)
        if not self.recorder.sampled:
            return
        for number, moved in self._optimizers.moved(optimizer):
            if number in thing.cut_off:
                self._registry.note_gradient_state(number, "none")
            elif moved and number in thing.reached:
                self._registry.note_gradient_state(number, "value")
        for number, parameter in self._registry.parameters():
            if number in thing.reached and self._registry.optimizer_of.get(parameter) is None:
                self._registry.note_gradient_state(number, "value")


def _steps_of(optimizer: Any) -> int:
    """How often an optimizer has stepped, as it counts itself."""
    count = getattr(optimizer, "global_step", None)
    return int(np.ravel(array_of(count))[0]) if isinstance(count, Tensor) else -1


def _cells_behind(values: list[Any], depth: int, seen: set[int]) -> Iterator[nn.Cell]:
    """The cells that functions refer to, through their closures, globals and what those refer to."""
    for value in values:
        if id(value) in seen or value is None:
            continue
        seen.add(id(value))
        if isinstance(value, nn.Cell):
            yield value
        elif isinstance(value, FunctionType | MethodType) and depth:
            function: Any = value.__func__ if isinstance(value, MethodType) else value
            held = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
            held += [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
            held += [value.__self__] if isinstance(value, MethodType) else []
            yield from _cells_behind([*held, getattr(function, "__wrapped__", None)], depth - 1, seen)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - asked for its exception
    except ValueError:
        return False
    return True
