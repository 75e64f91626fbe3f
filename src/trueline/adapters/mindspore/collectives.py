"""What ranks say to each other: collective operations, the cell that averages gradients, parameters that are broadcast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor, communication, mint, nn
from mindspore.communication import comm_func, management
from mindspore.graph import api
from mindspore.mint.distributed import distributed
from mindspore.ops.operations import comm_ops

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import array_of, is_plain, tensors_in
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

# By the names that checks know. Operators are objects of classes, the others functions of two modules.
OPERATORS = {
    "AllReduce": "all_reduce", "Reduce": "reduce", "Broadcast": "broadcast", "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter", "CollectiveScatter": "scatter", "CollectiveGather": "gather", "Barrier": "barrier",
    "AlltoAll": "all_to_all", "AlltoAllV": "all_to_all", "NeighborExchange": "all_to_all", "NeighborExchangeV2": "all_to_all",
    "Send": "send", "Receive": "recv",
}  # fmt: skip
_FUNCTIONS = (
    "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor",
    "scatter", "scatter_tensor", "gather", "gather_into_tensor", "barrier", "all_to_all", "all_to_all_single", "send", "recv",
    "isend", "irecv",
)  # fmt: skip
_REDUCTIONS = {"all_reduce", "reduce", "broadcast"}


class CollectiveWatch(Watch):
    """Watches operators and functions that the script calls itself. Told of calls of `DistributedGradReducer` by the watch of
    cells, and of what compiled steps hold by the watch of those."""

    def __init__(self, recorder: Recorder, registry: Registry, optimizers: OptimizerWatch) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._optimizers = optimizers
        self._inside = False
        self._step = -1
        self._told: set[tuple[str, int | None]] = set()

    def install(self, patches: Patches) -> None:
        for owner in (communication, management):
            patches.replace(owner, "init", self._watched("init_process_group", owner.init))
        for owner in (mint.distributed, distributed):
            patches.replace(owner, "init_process_group", self._watched("init_process_group", owner.init_process_group))
        for kind, name in OPERATORS.items():
            operator: Any = getattr(comm_ops, kind)
            patches.replace(operator, "__call__", self._watched_operator(name, operator.__call__))
        patches.replace(api, "_parameter_broadcast", self._watched_broadcast(api._parameter_broadcast))

    def install_visible(self, patches: Patches) -> None:
        """What compiled code may refer to."""
        for owner in (comm_func, mint.distributed, distributed):
            for name in _FUNCTIONS:
                if hasattr(owner, name):
                    patches.replace(owner, name, self._watched(name, getattr(owner, name)))

    def _watched(self, name: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            return self._call(name, original, args, kwargs, args or tuple(kwargs.values()), kwargs.get("op"))

        return watched

    def _watched_operator(self, name: str, original: Any) -> Any:
        watch = self

        def __call__(operator: Any, *args: Any) -> Any:  # noqa: N807 - it replaces that method
            return watch._call(name, original, (operator, *args), {}, args, getattr(operator, "op", None))

        return __call__

    def _call(self, name: str, original: Any, args: Any, kwargs: Any, given: Any, op: Any) -> Any:
        if self._inside or not self.recorder.active or self.recorder.busy:
            return original(*args, **kwargs)
        before = self._looked_at(name, given, op)
        self._inside = True
        try:
            result = original(*args, **kwargs)
        finally:
            self._inside = False
        self._happened(name, before, given, result)
        return result

    @guarded
    def _looked_at(self, name: str, given: Any, op: Any) -> list[dict[str, Any]]:
        """What is known of the tensors before the ranks exchange them: one entry each in sampled steps, else one for all."""
        if name not in _REDUCTIONS or not self.recorder.sampled:
            return [{"operation": name}]
        found = []
        for tensor in tensors_in(given, most=1 << 20):
            detail: dict[str, Any] = {"operation": name}
            if name != "broadcast":
                detail["op"] = "SUM" if op is None else str(op).upper()
            content, parameter = self._content(tensor)
            if content is not None:
                detail |= {"of": content, "parameter": parameter}
            if content == "gradient" and parameter is not None:
                detail["sum_before"] = float(array_of(tensor).sum(dtype=np.float64))
            found.append(detail)
        return found or [{"operation": name}]

    @guarded
    def _happened(self, name: str, before: list[dict[str, Any]] | None, given: Any, result: Any) -> None:
        given, results = tensors_in(given, most=1 << 20), tensors_in(result, most=1 << 20)
        if self._optimizers.is_fresh(given):
            self._optimizers.note_fresh(results)
        for place, detail in enumerate(before or [{"operation": name}]):
            if "sum_before" in detail:
                # Some functions give nothing and change what they were given.
                after = results[place] if place < len(results) else given[place]
                detail["l2_after"] = float(np.linalg.norm(array_of(after)))
            self._tell(name, detail)

    def _tell(self, name: str, detail: dict[str, Any], location: int | None = None) -> None:
        """Every call in sampled steps; in the others each line once, where a loop over all parameters would be many."""
        if self._step != self.recorder.step:
            self._step = self.recorder.step
            self._told = set()
        location = self.recorder.location() if location is None else location
        if not self.recorder.sampled and (name, location) in self._told:
            return
        self._told.add((name, location))
        self.recorder.event("collective", location=location, detail=detail)

    def _content(self, tensor: Tensor) -> tuple[str | None, int | None]:
        """Whether this is a parameter, or a gradient of the running step, as it was made or multiplied by something."""
        if isinstance(tensor, Parameter):
            return "parameter", self._registry.parameter_ids.get(tensor)
        number = self._registry.parameter_of_gradient(tensor)
        if number is not None or (self._optimizers.is_fresh([tensor]) and tensor.shape):
            return "gradient", number
        return None, None

    # DistributedGradReducer

    def reducer_called(self, cell: nn.DistributedGradReducer, original: Any, args: Any, kwargs: Any) -> Any:
        op = self._reduces_by(cell)
        return self._call("all_reduce", original, (cell, *args), kwargs, args or tuple(kwargs.values()), op)

    @guarded
    def _reduces_by(self, cell: nn.DistributedGradReducer) -> str:
        return _operation_of(cell)

    @guarded
    def inside_of_graph(self, reducers: list[Any], operators: list[tuple[str, int | None]]) -> None:
        """A compiled training step is over that holds these."""
        for reducer in reducers:
            self._tell(
                "all_reduce", {"operation": "all_reduce", "op": _operation_of(reducer), "of": "gradient", "compiled": True}
            )
        for name, location in operators:
            self._tell(OPERATORS[name], {"operation": OPERATORS[name], "compiled": True}, location)

    # Parameters that MindSpore broadcasts itself

    def _watched_broadcast(self, original: Any) -> Any:
        def watched(cell: nn.Cell) -> Any:
            result = original(cell)
            self._broadcast()
            return result

        return watched

    @guarded
    def _broadcast(self) -> None:
        self._tell("broadcast", {"operation": "broadcast", "of": "parameter", "parameter": None, "compiled": True})


def _operation_of(reducer: Any) -> str:
    """A mean is a sum that is multiplied by `degree`."""
    averages = reducer.mean and is_plain(reducer.degree) and not math.isclose(float(array_of(reducer.degree)), 1.0)
    return "AVG" if averages else "SUM"
