"""The operations of the first training steps: what flows from where to where, with the user's line of each.

A dispatch mode sees every operator that runs, forward and backward, and calls it as it is. It is on from a step's first root
call to its backward pass, on the first steps only. Operators inside of compiled functions are not seen.
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor

from trueline.adapters.base import guarded
from trueline.adapters.mindspore.names import neutral_name, settings_of
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import dtype_name, tensors_in
from trueline.adapters.shared.trace import Trace
from trueline.record import Recorder

# Operators of the framework's own bookkeeping.
_SILENT = {"Depend", "Load", "UpdateState", "MakeTuple", "TupleGetItem", "DType", "Shape", "Rank"}
# Whose results have no gradient whatever goes in.
_CUTTING = {"detach"}
_WITHOUT_DERIVATIVE = ("int", "uint", "bool")


class OpTrace(Trace):
    """Records the operations of a step while it is on; knows which tensor came from which operation."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder, registry, dtype_name)
        self._mode: _Mode | None = None
        # Tensors that depend on trainable parameters: MindSpore's own tensors do not tell.
        self._trained: set[Any] = set()
        self._parameters: dict[Any, Parameter] = {}
        # Inside of a loss function, which counts as one operation.
        self.paused = 0

    def begin(self, fed: list[tuple[int | None, Tensor]]) -> None:
        """A root call starts on a step that is traced, fed with these tensors of these batches."""
        if self._mode is None:
            self._parameters = {self.key_of(parameter): parameter for _, parameter in self._registry.parameters()}
            self._mode = _Mode(self)
            self._mode.__enter__()
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
            self._mode.__exit__(None, None, None)
            self._mode = None
        self._trained, self._parameters = set(), {}
        self.write()

    @property
    def is_on(self) -> bool:
        return self._mode is not None

    def needs_gradient(self, tensor: Tensor) -> bool:
        key = self.key_of(tensor)
        parameter = self._parameters.get(key)
        return bool(parameter.requires_grad) if parameter is not None else key in self._trained

    @guarded
    def called(self, name: str, args: Any, output: Any) -> None:
        if self.is_full or not self.is_on or name in _SILENT:
            return
        outputs = tensors_in(output)
        if name == "BiasAdd" and self._is_folded(tensors_in(args), outputs):
            return
        if outputs:
            taken = tensors_in(args, most=64)
            settings = settings_of(name, args)
            by_weight = len(taken) > 1 and self.parameter_of(taken[1]) is not None
            linear = name == "MatMul" and by_weight and settings.get("args") == [False, True]
            self.add("linear" if linear else neutral_name(name), taken, outputs, settings)

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


class _Mode(ms.MsDispatchMode):  # type: ignore[misc]
    def __init__(self, trace: OpTrace) -> None:
        self._trace = trace

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        output = func(*args, **kwargs) if kwargs else func(*args)
        trace = self._trace
        if trace.is_on and not trace.recorder.busy and not trace.paused:
            trace.called(func.name, args, output)
        return output
