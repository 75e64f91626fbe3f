"""The operations of the first training steps: what flows from where to where, with the user's line of each.

A dispatch mode sees every operator that runs, forward and backward, and calls it as it is; only indexing and the joining of a
list of tensors get past it, and are watched by themselves. All are on from a step's first root call to its backward pass, on the
first steps only. Operators inside of compiled functions are not seen.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import mindspore as ms
import msgspec
from mindspore import Parameter, Tensor
from mindspore.ops.auto_generate.pyboost_inner_prim import concat_impl

from trueline.adapters.base import guarded
from trueline.adapters.mindspore.names import neutral_name, settings_of
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import array_of, dtype_name, tensors_in
from trueline.adapters.shared.trace import Trace, index_text
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

_CONCAT: Any = type(concat_impl)
# Operators of the framework's own bookkeeping.
_SILENT = {"Depend", "Load", "UpdateState", "MakeTuple", "TupleGetItem", "DType", "Shape", "Rank"}
# Whose results may lie in the memory of what they took: other operators are handed a copy of them.
_VIEWS = frozenset(
    "reshape view flatten permute transpose squeeze unsqueeze narrow getitem split split_tensor chunk unstack expand "
    "broadcast_to detach slice select diagonal".split()
)
_MOST_VIEWS = 8
# Whose results have no gradient whatever goes in.
_CUTTING = {"detach"}
_WITHOUT_DERIVATIVE = ("int", "uint", "bool")
# Positions in the rows of the table `op`.
_INPUTS, _OUTPUTS = 5, 6


class OpTrace(Trace):
    """Records the operations of a step while it is on; knows which tensor came from which operation."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder, registry, dtype_name)
        self._mode: _Mode | None = None
        self._past_mode = Patches()
        # Tensors that depend on trainable parameters: MindSpore's own tensors do not tell.
        self._trained: set[Any] = set()
        self._parameters: dict[Any, Parameter] = {}
        # The latest results of operators that copy nothing, by shape.
        self._views: dict[tuple[int, ...], deque[Tensor]] = {}
        # Inside of a loss function, which counts as one operation.
        self.paused = 0

    def begin(self, fed: list[tuple[int | None, Tensor]]) -> None:
        """A root call starts on a step that is traced, fed with these tensors of these batches."""
        if self._mode is None:
            self._parameters = {self.key_of(parameter): parameter for _, parameter in self._registry.parameters()}
            self._mode = _Mode(self)
            self._mode.__enter__()
            self._past_mode.replace(Tensor, "__getitem__", self._watched_index(Tensor.__getitem__))
            self._past_mode.replace(_CONCAT, "__call__", _of_tuple(_CONCAT.__call__))
        self.feed(fed)

    def key_of(self, tensor: Tensor) -> Any:
        """Operators are handed other objects than the script has; the memory is the same. It waits for the operator."""
        return (tensor.data_ptr(), tuple(tensor.shape))

    def parameter_of(self, tensor: Tensor) -> int | None:
        parameter = self._parameters.get(self.key_of(tensor)) if self.is_on else tensor
        found: int | None = self._registry.parameter_ids.get(parameter)
        return found

    def end(self) -> None:
        """The backward pass starts, or the step is over: stop, and record which results were never used."""
        if self._mode is not None:
            self._past_mode.undo()
            self._mode.__exit__(None, None, None)
            self._mode = None
        self._trained, self._parameters, self._views = set(), {}, {}
        self.write()

    @property
    def is_on(self) -> bool:
        return self._mode is not None

    def needs_gradient(self, tensor: Tensor) -> bool:
        key = self.key_of(tensor)
        parameter = self._parameters.get(key)
        return bool(parameter.requires_grad) if parameter is not None else key in self._trained

    def note_gradients(self, seq: int, gradients: list[Tensor]) -> None:
        super().note_gradients(seq, gradients)
        self._trained.update(map(self.key_of, gradients))

    def cut_off_from(self, loss: Tensor) -> set[int] | None:
        """The trainable parameters from which no way leads to the loss, or none but through what cuts gradients: MindSpore gives
        them gradients of zero. None where the way to the loss was not followed."""
        if not self.is_on or self.is_full:
            return None
        reached: set[str] = set()
        waiting = [self.origin(loss, use=False)]
        while waiting:
            reference = waiting.pop()
            if reference not in reached:
                reached.add(reference)
                row = self._rows.get(reference)
                if row is not None and any(output["requires_grad"] for output in msgspec.json.decode(row[_OUTPUTS])):
                    waiting.extend(msgspec.json.decode(row[_INPUTS]))
        trainable = {number for number, parameter in self._registry.parameters() if parameter.requires_grad}
        found = {number for number in trainable if f"p{number}" not in reached}
        return found if len(found) < len(trainable) else None

    @guarded
    def called(self, name: str, args: Any, output: Any) -> None:
        if self.is_full or not self.is_on or name in _SILENT:
            return
        outputs = tensors_in(output)
        if name == "BiasAdd" and self._is_folded(tensors_in(args), outputs):
            return
        if outputs:
            taken = tensors_in(args, most=64)
            self._follow_copies(taken)
            settings = settings_of(name, args)
            constants = [float(array_of(one)) for one in taken if not one.shape and self._is_constant(one)]
            if constants:
                settings["args"] = [*settings.get("args", ()), *constants]
            by_weight = len(taken) > 1 and self.parameter_of(taken[1]) is not None
            linear = name == "MatMul" and by_weight and settings.get("args") == [False, True]
            self.add("linear" if linear else neutral_name(name), taken, outputs, settings)

    def _is_constant(self, tensor: Tensor) -> bool:
        """Whether a tensor is a number that the script wrote: operators are handed tensors of those."""
        return self.key_of(tensor) not in self._origins and self.parameter_of(tensor) is None

    def _watched_index(self, original: Any) -> Any:
        def __getitem__(tensor: Tensor, index: Any) -> Any:  # noqa: N807 - it replaces that method
            part = original(tensor, index)
            if not self.recorder.busy and not self.paused:
                self._indexed(tensor, index, part)
            return part

        return __getitem__

    @guarded
    def _indexed(self, tensor: Tensor, index: Any, part: Any) -> None:
        if not self.is_full and isinstance(part, Tensor):
            self._follow_copies([tensor])
            self.add("getitem", [tensor], [part], {"index": index_text(index, _kind_of_index)})

    def _follow_copies(self, taken: list[Tensor]) -> None:
        """A view that goes into another operator is copied on the way, unseen: the copy is told by its content."""
        for tensor in taken:
            key = self.key_of(tensor)
            if key in self._origins or self.parameter_of(tensor) is not None:
                continue
            views = self._views.get(tuple(tensor.shape), ())
            source = next((view for view in reversed(views) if _equal(view, tensor)), None)
            if source is not None:
                self._origins[key] = self._origins[self.key_of(source)]
                self._alive.append(tensor)
                if self.needs_gradient(source):
                    self._trained.add(key)

    def _is_folded(self, taken: list[Tensor], outputs: list[Tensor]) -> bool:
        """Let the bias be part of the layer that it belongs to, as the script has it."""
        origin = self.origin(taken[0])
        if self._rows.get(origin, [None] * 3)[2] not in {"matmul", "linear", "conv2d", "conv3d"}:
            return False
        self.extend(origin, taken[1:], outputs)
        if self._rows[origin][2] == "matmul":
            self._rows[origin][2] = "linear"
        self._trained.update(map(self.key_of, outputs))
        return True

    def add(self, name: str, taken: list[Tensor], outputs: list[Tensor], settings: dict[str, Any]) -> None:
        """Record an operation, of the framework or a function that counts as one."""
        if name in _CUTTING:
            # What it gives lies in the memory of what it took.
            self._trained.difference_update(map(self.key_of, outputs))
        elif any(self.needs_gradient(tensor) for tensor in taken):
            self._trained.update(self.key_of(one) for one in outputs if not dtype_name(one).startswith(_WITHOUT_DERIVATIVE))
        self.note(name, taken, outputs, settings, self.needs_gradient)
        if name in _VIEWS:
            for view in outputs:
                self._views.setdefault(tuple(view.shape), deque(maxlen=_MOST_VIEWS)).append(view)


def _of_tuple(original: Any) -> Any:
    """The operator as it is, but handed a tuple in the place of a list: tensors in lists are no tensors to a dispatch mode."""

    def __call__(primitive: Any, tensors: Any, *args: Any) -> Any:  # noqa: N807 - it replaces that method
        return original(primitive, tuple(tensors) if isinstance(tensors, list) else tensors, *args)

    return __call__


def _kind_of_index(value: Any) -> str:
    if isinstance(value, Tensor):
        return "mask" if dtype_name(value) == "bool" else "tensor"
    return type(value).__name__


def _equal(one: Tensor, other: Tensor) -> bool:
    return bool(one.dtype == other.dtype and array_of(one).tobytes() == array_of(other).tobytes())


class _Mode(ms.MsDispatchMode):  # type: ignore[misc]
    def __init__(self, trace: OpTrace) -> None:
        self._trace = trace

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        output = func(*args, **kwargs) if kwargs else func(*args)
        trace = self._trace
        if trace.is_on and not trace.recorder.busy and not trace.paused:
            trace.called(func.name, args, output)
        return output
