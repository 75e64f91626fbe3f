"""Compiled steps: graph mode, and functions under `ms.jit`. What happens inside of a compiled graph cannot be watched.

A call of compiled code is looked at from outside: what goes in, what comes out, the model and the optimizers it runs, and what
it does to the parameters. Its operations are read from what the compiler writes when it compiles (graphs.py), its
tensors shown by operators that are put into it on request (graph_tensors.py). What is not seen this way is declared in the run,
so that checks do not take silence for a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any

import msgspec
import numpy as np
from mindspore import Tensor, amp, nn
from mindspore.graph import api

from trueline.adapters.base import Watch, essential, guarded
from trueline.adapters.mindspore.collectives import CollectiveWatch
from trueline.adapters.mindspore.compiled.graph_tensors import GraphTensors
from trueline.adapters.mindspore.compiled.graphs import CompiledGraph, CompiledGraphs
from trueline.adapters.mindspore.compiled.ir_files import written_graphs
from trueline.adapters.mindspore.kinds import OPTIMIZERS, is_wrapper, kind_of, parts_of
from trueline.adapters.mindspore.losses import LossWatch
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.precision import ScalerWatch, scale_of
from trueline.adapters.mindspore.rates import parameters_of
from trueline.adapters.mindspore.scores import ScoreWatch
from trueline.adapters.mindspore.tensors import LateNumber, array_of, tensors_in
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder, to_json
from trueline.recorder.identity import ByIdentity
from trueline.recorder.patches import Patches

_INSIDE = ("layers", "scores", "dropout")
_OF_STEP = ("gradients", "order")
# Of these, what taps may show.
_SHOWN = {"layers", "gradients"}
# Calls in a row without a step of the optimizer that may add up gradients.
_MOST_ACCUMULATED = 64
# How far cells are looked for: a step function refers to a gradient function, that to the forward function, that to the model.
_DEEPEST = 5
# How MindSpore calls the functions that `grad` and `value_and_grad` give.
_GRADIENT_FUNCTION = "after_grad"
# Position in the rows of the table `root_call`.
_BATCH = 11


class _Parts(msgspec.Struct):
    """What compiled code is made of, as far as can be told from outside. `root` is the cell that was compiled, `cells` are those
    that a function refers to; `graph` is what the compiler tells of code that trains, `batch` what the running call is fed."""

    root: nn.Cell | None = None
    cells: list[nn.Cell] = []
    graph: CompiledGraph | None = None
    batch: int | None = None
    model: nn.Cell | None = None
    optimizers: list[Any] = []
    losses: list[nn.Cell] = []
    reducers: list[nn.Cell] = []
    scalers: list[Any] = []
    scales: bool = False
    trains: bool = False


class CompiledWatch(Watch):
    """Told of calls of cells in graph mode; watches calls of functions under `ms.jit`."""

    def __init__(
        self,
        recorder: Recorder,
        graphs: CompiledGraphs,
        tensors: GraphTensors,
        optimizers: OptimizerWatch,
        losses: LossWatch,
        scores: ScoreWatch,
        scalers: ScalerWatch,
        collectives: CollectiveWatch,
        progress: StepProgress,
        announce: Callable[[str], None],
    ) -> None:
        super().__init__(recorder)
        self._graphs = graphs
        self._tensors = tensors
        self._optimizers = optimizers
        self._losses = losses
        self._scores = scores
        self._scalers = scalers
        self._collectives = collectives
        self._progress = progress
        self._announce = announce
        self._inside = False
        self._unseen: set[str] = set()
        self._lasting: set[str] = set()
        self._known: dict[tuple[CodeType | None, tuple[int, ...]], _Parts] = {}
        self._known_cells: ByIdentity = ByIdentity()
        self._idle = 0
        # Whether steps may be left out because of their gradients: told by a cell that does so, or by one that was.
        self.may_skip = False
        # Given by the watch of cells: how a root call is recorded, and whether the running call is inside of one, and of a
        # function that is differentiated operation by operation.
        self.describe: Any = None
        self.inside_root: Callable[[], bool] = lambda: False
        self.is_differentiated: Callable[[], bool] = lambda: False
        # What such functions have called since the last backward pass.
        self._awaiting: list[_Parts] = []

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
        self._lasting |= set(what)
        unseen = self._lasting | self._graphs.unread
        if unseen != self._unseen:
            self._unseen = unseen
            self.recorder.row("meta", ("unseen", to_json(sorted(unseen))))

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
        parts = self._parts_inside(cell) or _Parts()
        output = self._run(original, (cell, *args), kwargs, args, parts)
        if not parts.trains:
            self._evaluated(cell, output)
        return output

    @guarded
    def _parts_inside(self, cell: nn.Cell) -> _Parts:
        """What a cell is made of. For a training step it is looked for anew on sampled steps only: the walk takes long."""
        parts: _Parts | None = self._known_cells.get(cell)
        if parts is None or self.recorder.sampled:
            parts = self._parts_of([cell])
            parts.graph = self._graphs.of(id(cell)) if parts.trains else None
            parts.scales = isinstance(cell, nn.TrainOneStepWithLossScaleCell)
            self.may_skip = self.may_skip or parts.scales
            if parts.trains and parts.model is not cell:
                # Without the cell itself, which what is known of it must not keep alive.
                self._known_cells[cell] = msgspec.structs.replace(parts, cells=[])
        return msgspec.structs.replace(parts, root=cell, cells=[cell])

    def _parts_of(self, cells: list[nn.Cell]) -> _Parts:
        held = {id(part): part for cell in cells for part in parts_of(cell)}
        optimizers = [part for part in held.values() if isinstance(part, OPTIMIZERS)]
        losses = [part for part in held.values() if self._losses.is_loss(part)]
        reducers = [part for part in held.values() if isinstance(part, nn.DistributedGradReducer)]
        models = [model for cell in cells if (model := self.model_in(cell)) is not None]
        model = max(models, key=lambda model: len(parts_of(model)), default=None)
        return _Parts(
            cells=cells, model=model, optimizers=optimizers, losses=losses, reducers=reducers, trains=bool(optimizers)
        )  # fmt: skip

    @guarded
    def _evaluated(self, cell: nn.Cell, output: Any) -> None:
        """A compiled evaluation: its loss, and how it judges the samples."""
        outputs = tensors_in(output, most=2)
        if isinstance(cell, nn.WithEvalCell):
            if outputs:
                self._losses.evaluated(outputs[0])
            outputs = outputs[1:]
        if outputs:
            self._scores.at_output(outputs[0])

    def model_in(self, cell: nn.Cell) -> nn.Cell | None:
        """The model that a cell puts a step, a loss or an evaluation around; the cell itself where it does no such thing."""
        if not is_wrapper(cell):
            return None if kind_of(cell) == "loss" else cell
        found = [self.model_in(part) for part in cell._cells.values() if not isinstance(part, OPTIMIZERS)]
        models = [model for model in found if model is not None]
        return max(models, key=lambda model: len(parts_of(model)), default=None)

    # Functions under `ms.jit`

    def _function_called(self, executor: Any, original: Any, args: Any, kwargs: Any) -> Any:
        parts = self._parts_behind(executor) or _Parts()
        if parts.graph is None and parts.model is not None and self.is_differentiated():
            parts.graph = self._graphs.of((getattr(executor.fn, "__code__", None), id(parts.model)))
        return self._run(original, (executor, *args), kwargs, args, parts)

    @guarded
    def _parts_behind(self, executor: Any) -> _Parts:
        """The model, the optimizers, losses and scalers that a function refers to."""
        function = executor.fn
        code = getattr(function, "__code__", None)
        key = _key_of(function)
        known = self._known.get(key) if code is not None and executor.obj is None else None
        if known is not None:
            return known
        behind = list(_parts_referred_to([function, executor.obj], _DEEPEST, set()))
        found = self._parts_of([part for part in behind if isinstance(part, nn.Cell)])
        found.scalers = [part for part in behind if isinstance(part, amp.LossScaler)]
        found.trains = found.trains or any(isinstance(part, FunctionType) for part in behind)
        self.may_skip = self.may_skip or bool(found.scalers)
        found.root = executor.obj if isinstance(executor.obj, nn.Cell) else None
        found.graph = self._graphs.of((code, id(found.model))) if found.trains else None
        if code is not None:
            self._known[key] = found
        return found

    def _run(self, original: Any, call: Any, kwargs: Any, inputs: Any, parts: _Parts) -> Any:
        pending = self._before(parts, inputs, kwargs)
        self._inside = True
        try:
            with written_graphs(self._graphs.folder(parts.graph if parts.trains else None)) as files:
                output = self._called(original, call, kwargs, parts)
        finally:
            self._inside = False
            self._progress.inside_optimizer = False
        self._after(parts, inputs, output, pending, files)
        return output

    def _called(self, original: Any, call: Any, kwargs: Any, parts: _Parts) -> Any:
        if not self._is_tapped(parts) or parts.graph is None:
            return original(*call, **kwargs)
        return self._tensors.around(parts.graph, parts.cells, parts.optimizers, parts.root, lambda: original(*call, **kwargs))

    def _is_tapped(self, parts: _Parts) -> bool:
        """Whether taps are to show what is inside of the coming call, or have shown it in the last."""
        graph = parts.graph
        trains = parts.trains or self.is_differentiated()
        return self.recorder.graph_tensors and trains and graph is not None and not graph.untapped

    @guarded
    def backward_over(self) -> None:
        """A backward pass outside of compiled code is over: it has been through what compiled functions gave."""
        awaiting, self._awaiting = self._awaiting, []
        cells = [cell for parts in awaiting for cell in parts.cells]
        if cells and not self._tensors.outputs_seen(cells, None):
            self.declare("layers")

    @guarded
    def _before(self, parts: _Parts, inputs: Any, kwargs: Any) -> list[Any]:
        shown: set[str] = _SHOWN if self._is_tapped(parts) else set()
        if parts.model is not None and self.describe is not None:
            self._announce("tapped" if self.recorder.graph_tensors else "compiled")
            differentiated = self.is_differentiated()
            grad = parts.trains or (differentiated and not self.inside_root())
            row = self.describe(parts.model, inputs, kwargs, grad=grad, seen=False)
            parts.batch = None if row is None else row[_BATCH]
            if parts.trains or differentiated:
                self.declare(*(set(_INSIDE) - shown))
        for scaler in parts.scalers if parts.trains else ():
            self._scalers.used(scaler)
        if not parts.optimizers:
            return []
        self.declare(*(set(_OF_STEP) - shown))
        # Reading its count waits for the device: where the model cannot leave a step out, on sampled steps only.
        counted = self.recorder.sampled or self.may_skip
        counts = [_steps_of(optimizer) if counted else None for optimizer in parts.optimizers]
        return [counts, [self._optimizers.before_step(optimizer, None) for optimizer in parts.optimizers]]

    def _after(self, parts: _Parts, inputs: Any, output: Any, pending: list[Any] | None, files: list[Path]) -> None:
        self._backward_seen(parts, inputs, output, files)
        if parts.trains and parts.graph is not None:
            self._steps_over(parts, parts.graph, pending)

    @guarded
    def _backward_seen(self, parts: _Parts, inputs: Any, output: Any, files: list[Path]) -> None:
        """What was called is over: if it trains, a backward pass has taken place in it."""
        recorder, progress = self.recorder, self._progress
        graph = parts.graph
        if graph is not None and not parts.trains and recorder.graph_tensors and self.is_differentiated():
            if graph.untapped:
                self.declare("layers")
            else:
                self._awaiting.append(parts)
        if not parts.trains or graph is None:
            return
        origin = self._graphs.read(graph, files, parts.batch, parts.root, parts.cells) if files else None
        self.declare()
        losses = [tensor for tensor in tensors_in(output) if math.prod(tensor.shape) == 1 and tensor.is_floating_point()]
        if losses:
            progress.loss = LateNumber(losses[0], self._unscaling(parts))
        progress.backwards += 1
        known = float(progress.loss) if recorder.sampled and losses else None
        if known is not None and len(parts.losses) == 1 and not (files and self._graphs.loss_calls):
            given = tensors_in(inputs, most=4)
            self._losses.inside_of_graph(parts.losses[0], given[-1] if len(given) > 1 else None, known)
        detail: dict[str, Any] | None = None
        if recorder.sampled:
            detail = {"of": origin, "compiled": True, "carried": [], **graph.backward}
        progress.last_backward = recorder.event("backward", value=known, detail=detail, location=recorder.location())
        self._graphs.note_cut_off(graph, first=progress.backwards == 1)
        self._collectives.inside_of_graph(parts.reducers, graph.collectives)
        tapped = self._is_tapped(parts)
        if tapped and not self._tensors.outputs_seen(parts.cells, graph.called):
            self.declare("layers")
        elif recorder.graph_tensors and not tapped:
            self.declare(*(_SHOWN if parts.optimizers else ("layers",)))
        if not parts.optimizers:
            self._optimizers.note_fresh(tensors_in(output, most=1 << 20))

    @essential
    def _steps_over(self, parts: _Parts, graph: CompiledGraph, pending: list[Any] | None) -> None:
        """The steps of the optimizers in it are over, or they were left out. `pending` is what `_before` gave: None where that
        failed."""
        nothing = [None] * len(parts.optimizers)
        for optimizer, count, step in zip(parts.optimizers, *(pending or (nothing, nothing)), strict=True):
            if count is not None and count >= 0 and _steps_of(optimizer) == count:
                self.may_skip = True
                self._not_stepped(optimizer, parts)
            else:
                without = self._graphs.note_gradients(optimizer, graph) or 0
                if self._is_tapped(parts) and step is not None:
                    self._add_gradients(optimizer, step, without)
                self._idle = 0
                self._optimizers.after_step(optimizer, step)
        for scaler in parts.scalers:
            self._scalers.updated(scaler)

    def _unscaling(self, parts: _Parts) -> float:
        """What makes the loss of what was differentiated: a gradient function with a scaler inside gives the product."""
        scales = [] if parts.optimizers else [scale_of(scaler) for scaler in parts.scalers]
        return 1.0 / scales[0] if len(scales) == 1 and scales[0] else 1.0

    def _add_gradients(self, optimizer: Any, step: dict[str, Any], without: int) -> None:
        """Complete what is known of a step with the gradients that taps have shown."""
        norm = self._tensors.gradients_seen(optimizer)
        if norm is None:
            self.declare("gradients")
        else:
            given = len(parameters_of(optimizer))
            step |= {"grad_norm": norm, "with_gradient": given - without, "without_gradient": without}

    def _not_stepped(self, optimizer: Any, parts: _Parts) -> None:
        """Left out because of its gradients, where a scaler is at work; else gradients are added up for a step to come."""
        self._idle += 1
        if parts.scalers or parts.scales or self._idle > _MOST_ACCUMULATED:
            self._optimizers.skipped(optimizer)
        else:
            self._optimizers.put_off(optimizer)


def _steps_of(optimizer: Any) -> int:
    """How often an optimizer has stepped, as it counts itself."""
    count = getattr(optimizer, "global_step", None)
    return int(np.ravel(array_of(count))[0]) if isinstance(count, Tensor) else -1


def _parts_referred_to(values: list[Any], depth: int, seen: set[int]) -> Iterator[Any]:
    """The cells, loss scalers and gradient functions that functions are or refer to, through their closures, globals and what
    those refer to."""
    for value in values:
        if id(value) in seen or value is None:
            continue
        seen.add(id(value))
        if isinstance(value, nn.Cell | amp.LossScaler):
            yield value
        elif getattr(type(value), "__ms_class__", False) and depth:
            # An object under `ms.jit_class`.
            yield from _parts_referred_to(list(vars(value).values()), depth - 1, seen)
        elif isinstance(value, FunctionType | MethodType) and depth:
            function: Any = value.__func__ if isinstance(value, MethodType) else value
            if function.__qualname__.endswith(_GRADIENT_FUNCTION):
                yield function
            held = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
            held += [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
            held += [value.__self__] if isinstance(value, MethodType) else []
            yield from _parts_referred_to([*held, getattr(function, "__wrapped__", None)], depth - 1, seen)


def _key_of(function: Any) -> tuple[CodeType | None, tuple[int, ...]]:
    """Tells functions apart that are made by one piece of code around different things, as all gradient functions are."""
    held = getattr(function, "__closure__", None) or ()
    return getattr(function, "__code__", None), tuple(id(cell.cell_contents) for cell in held if _is_filled(cell))


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - asked for its exception
    except ValueError:
        return False
    return True
