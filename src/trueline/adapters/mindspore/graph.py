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
        self._trained: set[int] = set()
        # Inside of a loss function, which counts as one operation.
        self.paused = 0

    def begin(self, fed: list[tuple[int | None, Tensor]]) -> None:
        """A root call starts on a step that is traced, fed with these tensors of these batches."""
        if self._mode is None:
            self._mode = _Mode(self)
            self._mode.__enter__()
        self.feed(fed)

    def end(self) -> None:
        """The backward pass starts, or the step is over: stop, and record which results were never used."""
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None
        self._trained = set()
        self.write()

    @property
    def is_on(self) -> bool:
        return self._mode is not None

    def needs_gradient(self, tensor: Tensor) -> bool:
        if isinstance(tensor, Parameter):
            return bool(tensor.requires_grad)
        return id(tensor) in self._trained

    @guarded
    def called(self, name: str, args: Any, output: Any) -> None:
        if self.is_full or not self.is_on or name in _SILENT:
            return
        outputs = tensors_in(output)
        if outputs:
            self.add(neutral_name(name), tensors_in(args, most=64), outputs, settings_of(name, args))

    def add(self, name: str, taken: list[Tensor], outputs: list[Tensor], settings: dict[str, Any]) -> None:
        """Record an operation, of the framework or a function that counts as one."""
        if name not in _CUTTING and any(self.needs_gradient(tensor) for tensor in taken):
            self._trained.update(id(one) for one in outputs if not dtype_name(one).startswith(_WITHOUT_DERIVATIVE))
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
