"""The tensors inside of compiled training steps, on request: outputs of cells, their gradients, and those of parameters.

Taps (taps.py) are hung on the cells while a training step is called, so that they are part of it if that call compiles,
and taken off again: no other graph has them. What they show is measured at once, on sampled steps, by the threads that run the
graph; rows are written when the call is over. A graph that does not compile with them is compiled as the script has it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any

import msgspec
import numpy as np
import xxhash
from mindspore import Parameter, Tensor, nn
from mindspore.graph import api
from numpy.typing import NDArray

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.compiled.graphs import CompiledGraph
from trueline.adapters.mindspore.compiled.ir_files import remove
from trueline.adapters.mindspore.compiled.taps import MARKS_APART, MOST_SHOWN, Tap, gradients_hook, output_hook
from trueline.adapters.mindspore.kinds import OPTIMIZERS, kind_of, parts_of
from trueline.adapters.mindspore.rates import parameters_of
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import array_of, is_plain, stored
from trueline.recorder import Recorder
from trueline.recorder.identity import ByIdentity
from trueline.store import StoredTensor

_MOST_CALLS_PER_STEP = 4
# Under which a hook stands among those of a cell; MindSpore counts its own from zero.
_KEY = -1
# What a tap gives back where nobody looks at what it shows.
_NO_CALL = 0
_CELL_MARKS = MOST_SHOWN * MARKS_APART
# Positions in the rows of the table `tensor_stat`.
_POSITION, _DTYPE, _ZERO_SHARE = 3, 5, 12


class _Measured(msgspec.Struct):
    """A tensor that was shown: its row, and itself where it is to be kept."""

    row: tuple[Any, ...]
    whole: StoredTensor | None


class _Shown(msgspec.Struct):
    """One output of one call of a cell. `digest` tells of its content."""

    number: int
    digest: int
    output: _Measured
    half: bool
    gradient: _Measured | None = None


class _Hook(msgspec.Struct):
    """What is hung on a cell: where, and what."""

    place: dict[Any, Any]
    function: Any


class GraphTensors(Watch):
    """Hangs taps on the cells of compiled steps, and records what they show."""

    def __init__(self, recorder: Recorder, registry: Registry, refused: Callable[[str], None]) -> None:
        """`refused` is told why a graph does not compile with taps."""
        super().__init__(recorder)
        self._refused = refused
        # Given by the watch of cells: whether the running call is differentiated by a function outside of it.
        self.is_differentiated: Callable[[], bool] = lambda: False
        self._registry = registry
        self._tap: Tap | None = None
        self._cell_hooks: ByIdentity = ByIdentity()
        self._optimizer_hooks: ByIdentity = ByIdentity()
        self._hooks: dict[int, list[_Hook]] = {}
        # The parameters whose gradients are shown, by their marks.
        self._parameters: list[tuple[weakref.ref[Any], weakref.ref[Any]]] = []
        self._lock = Lock()
        self._open = False
        self._problem: Exception | None = None
        self._shown_in_call = 0
        self._calls_shown = _NO_CALL
        self._outputs: dict[int, list[_Shown]] = {}
        self._by_call: dict[int, _Shown] = {}
        self._gradients: dict[int, _Measured] = {}
        self._squares: dict[int, float] = {}
        self._calls: dict[int, int] = {}
        self._calls_step = -1

    # Around the call of a compiled thing

    def around(
        self, graph: CompiledGraph, cells: list[nn.Cell], optimizers: list[Any], root: nn.Cell | None, call: Callable[[], Any]
    ) -> Any:
        """Make the call, with taps in what it compiles; without them where that fails."""
        hooks = None if graph.untapped else self._hooks_of(graph, cells, optimizers)
        if not hooks:
            graph.untapped = True
            return call()
        before = [] if graph.proven else self._contents(cells)
        if before is None:
            # What a part of a graph that does not compile changed could not be set back.
            graph.untapped = True
            return call()
        compiled = [api.ms_compile_cache, *([] if root is None else [root.compile_cache])]
        earlier = [set(phases) for phases in compiled]
        self._begin()
        try:
            with _hung(hooks):
                output = call()
                graph.proven = True
                return output
        except Exception as problem:
            self._end()
            if graph.proven and self._shown_in_call:
                raise
            reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        finally:
            if not self.is_differentiated():
                self._end()
        # Parts of a graph may be compiled while others run: what they changed is set back, and the whole compiled again.
        self._restore(before)
        for phases, known in zip(compiled, earlier, strict=True):
            phases.intersection_update(known)
        remove(self.recorder.scratch)
        output = call()
        graph.untapped = True
        self._refused(reason)
        return output

    @guarded
    def _contents(self, cells: list[nn.Cell]) -> list[tuple[Parameter, NDArray[Any]]]:
        parameters = {id(parameter): parameter for cell in cells for parameter in cell.get_parameters()}.values()
        return [(parameter, array_of(parameter).copy()) for parameter in parameters if is_plain(parameter)]

    @guarded
    def _restore(self, before: list[tuple[Parameter, NDArray[Any]]]) -> None:
        for parameter, values in before:
            if not np.array_equal(array_of(parameter), values, equal_nan=values.dtype.kind == "f"):
                parameter.assign_value(Tensor(values, parameter.dtype))

    @guarded
    def _hooks_of(self, graph: CompiledGraph, cells: list[nn.Cell], optimizers: list[Any]) -> list[_Hook]:
        known = self._hooks.get(id(graph))
        if known is not None and not self.recorder.sampled:
            return known
        found = []
        for part in {id(part): part for cell in cells for part in parts_of(cell)}.values():
            number = self._registry.module_id(part)
            if number is not None and kind_of(part) != "loss" and not isinstance(part, OPTIMIZERS):
                found.append(_Hook(part._forward_hook, self._cell_hook(part, number)))
        found += [_Hook(optimizer._forward_pre_hook, self._optimizer_hook(optimizer)) for optimizer in optimizers]
        self._hooks[id(graph)] = found
        return found

    def _cell_hook(self, cell: nn.Cell, number: int) -> Any:
        if self._tap is None:
            self._tap = Tap(self._shown_output(), self._shown_gradient())
        hook = self._cell_hooks.get(cell)
        if hook is None:
            hook = self._cell_hooks[cell] = output_hook(self._tap, number * _CELL_MARKS)
        return hook

    def _optimizer_hook(self, optimizer: Any) -> Any:
        hook = self._optimizer_hooks.get(optimizer)
        if hook is None:
            parameters = parameters_of(optimizer)
            first = len(self._parameters) * MARKS_APART
            self._parameters += [(weakref.ref(optimizer), weakref.ref(parameter)) for parameter in parameters]
            hook = gradients_hook(self._shown_parameter_gradient(), first, len(parameters))
            self._optimizer_hooks[optimizer] = hook
        return hook

    @guarded
    def _begin(self) -> None:
        self._shown_in_call = 0
        self._squares = {}
        if self.recorder.sampled and not self._open:
            # What an earlier step still computes is not to be taken for this one's.
            api._pynative_executor.sync()
            self._outputs, self._by_call, self._gradients = {}, {}, {}
            if self._calls_step != self.recorder.step:
                self._calls_step = self.recorder.step
                self._calls = {}
            self._open = True

    @guarded
    def _end(self) -> None:
        """Nothing more is to be shown: the call is over, and so is its backward pass."""
        # Graphs may go on when their call has returned. Gradients are wanted of every step.
        api._pynative_executor.sync()
        self._open = False

    # What taps show, told by the threads that run the graph

    def _shown_output(self) -> Callable[..., NDArray[Any]]:
        def show(values: Any, mark: NDArray[Any]) -> NDArray[Any]:
            self._shown_in_call += 1
            # A single number comes without its type, which is float32.
            values = values if isinstance(values, np.ndarray) else np.asarray(values, np.float32)
            call = self._noted(self._note_output, values, int(np.ravel(mark)[0])) if self._open else None
            return np.array([_NO_CALL if call is None else call], np.int32)

        return show

    def _shown_gradient(self) -> Callable[..., NDArray[Any]]:
        def show(values: Any, call: NDArray[Any]) -> NDArray[Any]:
            if self._open:
                values = values if isinstance(values, np.ndarray) else np.asarray(values, np.float32)
                self._noted(self._note_gradient, values, int(np.ravel(call)[0]))
            return np.array([_NO_CALL], np.int32)

        return show

    def _shown_parameter_gradient(self) -> Callable[..., NDArray[Any]]:
        def show(values: Any, mark: NDArray[Any]) -> NDArray[Any]:
            if self.recorder.active:
                values = values if isinstance(values, np.ndarray) else np.asarray(values, np.float32)
                self._noted(self._note_parameter_gradient, values, int(np.ravel(mark)[0]))
            return np.array([_NO_CALL], np.int32)

        return show

    def _noted(self, note: Callable[[NDArray[Any], int], int | None], values: NDArray[Any], key: int) -> int | None:
        """Whatever goes wrong is told when the call is over: the store belongs to the training thread."""
        started = perf_counter()
        try:
            with self._lock:
                return note(values, key)
        except Exception as problem:  # noqa: BLE001 - recording must never break training
            self._problem = problem
            return None
        finally:
            self.recorder.spent += perf_counter() - started

    def _note_output(self, values: NDArray[Any], mark: int) -> int:
        known = self._outputs.setdefault(mark // MARKS_APART, [])
        digest = xxhash.xxh3_64_intdigest(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
        number, half = mark // _CELL_MARKS, bool(mark % MARKS_APART)
        measured = next((one.output for one in known if one.digest == digest), None)
        if measured is None:
            measured = self._measured("output", number, values, half=half)
        self._calls_shown += 1
        shown = self._by_call[self._calls_shown] = _Shown(number, digest, measured, half)
        known.append(shown)
        return self._calls_shown

    def _note_gradient(self, values: NDArray[Any], call: int) -> None:
        shown = self._by_call.get(call)
        if shown is not None:
            shown.gradient = self._measured("output_grad", shown.number, values, half=shown.half)

    def _note_parameter_gradient(self, values: NDArray[Any], mark: int) -> None:
        place = mark // MARKS_APART
        flat = values.reshape(-1).astype(np.float64, copy=False)
        self._squares[place] = float(np.dot(flat, flat))
        number = self._registry.parameter_ids.get(self._parameters[place][1]())
        if self._open and number is not None:
            self._gradients[place] = self._measured("gradient", number, values, half=bool(mark % MARKS_APART))

    def _measured(self, role: str, number: int, values: NDArray[Any], *, half: bool) -> _Measured:
        row = self._registry.measured(self.recorder.step, role, number, 0, values)
        if half:
            row = (*row[:_DTYPE], "bfloat16", *row[_DTYPE + 1 :])
        return _Measured(row, stored(values) if self.recorder.keeps_tensors else None)

    # When the call is over

    @guarded
    def outputs_seen(self, cells: list[nn.Cell], called: set[int] | None) -> bool:
        """Record the outputs that were shown. False where one with parameters that learn should have been and was not.

        `called`: the modules that the graph calls, where that is known.
        """
        self._end()
        if self._problem is not None:
            raise self._problem
        if not self.recorder.sampled:
            return True
        shown = {one.number for several in self._outputs.values() for one in several}
        self._write_outputs()
        self._outputs = {}
        learning = {
            number
            for cell in cells
            for part in parts_of(cell)
            if any(parameter.requires_grad for parameter in part._params.values() if parameter is not None)
            and (number := self._registry.module_id(part)) is not None
        }
        return bool(shown) and (learning if called is None else learning & called) <= shown

    def _write_outputs(self) -> None:
        made: dict[int, int] = {}
        for key, several in sorted(self._outputs.items()):
            number, place = divmod(key, MOST_SHOWN)
            before = self._calls.get(number, 0)
            calls = _calls_of(several)
            made[number] = max(made.get(number, 0), len(calls))
            for call, one in enumerate(calls[: _MOST_CALLS_PER_STEP - before], start=before):
                for measured in (one.output, one.gradient):
                    if measured is not None:
                        self._write(measured, call * MOST_SHOWN + place)
        for number, count in made.items():
            self._calls[number] = self._calls.get(number, 0) + count

    @guarded
    def gradients_seen(self, optimizer: Any) -> float | None:
        """Record the gradients that an optimizer was called with; gives their norm, None where they were not shown."""
        registry = self._registry
        places = [place for place in self._squares if self._parameters[place][0]() is optimizer]
        for measured in [self._gradients[place] for place in places if place in self._gradients]:
            number, zeros = measured.row[2], measured.row[_ZERO_SHARE]
            if number in registry.cut_off and zeros == 1.0:
                # MindSpore fills in zeros where no gradient can arrive.
                continue
            self._write(measured, 0)
            registry.note_gradient_state(number, "zero" if zeros == 1.0 else "value")
        squares = [self._squares[place] for place in places]
        return math.sqrt(sum(squares)) / getattr(optimizer, "loss_scale", 1.0) if squares else None

    def _write(self, measured: _Measured, position: int) -> None:
        row = (*measured.row[:_POSITION], position, *measured.row[_POSITION + 1 :])
        self.recorder.row("tensor_stat", row)
        if measured.whole is not None:
            self._registry.keep_whole(row, measured.whole)


def _calls_of(shown: list[_Shown]) -> list[_Shown]:
    """One entry per call, in the order of the calls. The compiler hangs a hook on a cell once for every place that calls it, so
    that each of its calls shows the same content as often."""
    counts: dict[int, int] = {}
    for one in shown:
        counts[one.digest] = counts.get(one.digest, 0) + 1
    times = math.gcd(*counts.values()) if counts else 1
    met: dict[int, int] = {}
    calls = []
    for one in shown:
        if met.get(one.digest, 0) % times == 0:
            calls.append(one)
        met[one.digest] = met.get(one.digest, 0) + 1
    return calls


@contextmanager
def _hung(hooks: list[_Hook]) -> Iterator[None]:
    for hook in hooks:
        hook.place[_KEY] = hook.function
    try:
        yield
    finally:
        for hook in hooks:
            hook.place.pop(_KEY, None)
