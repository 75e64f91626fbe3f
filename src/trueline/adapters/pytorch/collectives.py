"""What ranks say to each other: collective operations that the script calls itself, and the wrappers that do it for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.tensors import is_plain
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

_REDUCTIONS = ("all_reduce", "reduce", "broadcast")
_NAMES = (
    "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "scatter", "gather", "barrier",
    "all_to_all", "all_to_all_single", "send", "recv", "isend", "irecv", "init_process_group",
)  # fmt: skip


class CollectiveWatch(Watch):
    """Watches the functions of `torch.distributed`, and when `DistributedDataParallel` is built or told not to average."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._step = -1
        self._told: set[tuple[str, int | None]] = set()
        self._addresses: dict[int, tuple[str, int]] = {}

    def install(self, patches: Patches) -> None:
        if not torch.distributed.is_available():
            return
        for name in _REDUCTIONS:
            patches.replace(torch.distributed, name, self._watched_reduction(name, getattr(torch.distributed, name)))
        for name in _NAMES:
            patches.replace(torch.distributed, name, self._watched(name, getattr(torch.distributed, name)))
        wrapper: Any = torch.nn.parallel.DistributedDataParallel
        patches.replace(wrapper, "__init__", self._watched(wrapper.__name__, wrapper.__init__))
        patches.replace(wrapper, "no_sync", self._watched("no_sync", wrapper.no_sync))
        sampler: Any = torch.utils.data.DistributedSampler
        patches.replace(sampler, "__init__", self._watched(sampler.__name__, sampler.__init__))
        join: Any = torch.distributed.algorithms.Join
        patches.replace(join, "__init__", self._watched("join", join.__init__))

    def _watched(self, name: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not torch.compiler.is_compiling():
                self._called(name)
            return result

        return watched

    def _watched_reduction(self, name: str, original: Any) -> Any:
        def watched(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(tensor, *args, **kwargs)
            detail = self._looked_at(name, tensor, args, kwargs)
            result = original(tensor, *args, **kwargs)
            self._reduced(name, tensor, detail or {"operation": name})
            return result

        return watched

    @guarded
    def _called(self, name: str) -> None:
        self._tell(name, self.recorder.location(), {"operation": name})

    @guarded
    def _looked_at(self, name: str, tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """What is known of a tensor before the ranks exchange it, in sampled steps."""
        detail: dict[str, Any] = {"operation": name}
        if not self.recorder.sampled or not isinstance(tensor, Tensor) or not is_plain(tensor):
            return detail
        if name != "broadcast":
            detail["op"] = _name_of(kwargs.get("op", next((arg for arg in args if not isinstance(arg, int)), None)))
        content = self._content(tensor)
        if content is not None:
            detail |= {"of": content[0], "parameter": content[1]}
            if content[0] == "gradient" and not kwargs.get("async_op", False) and tensor.is_cpu:
                detail |= {"sum_before": float(tensor.detach().sum())}
        return detail

    @guarded
    def _reduced(self, name: str, tensor: Any, detail: dict[str, Any]) -> None:
        if "sum_before" in detail:
            detail["l2_after"] = float(tensor.detach().norm())
        self._tell(name, self.recorder.location(), detail)

    def _tell(self, name: str, location: int | None, detail: dict[str, Any]) -> None:
        """Every call in sampled steps; in the others each line once, where a loop over all parameters would be many."""
        if self._step != self.recorder.step:
            self._step = self.recorder.step
            self._told = set()
            self._addresses = {}
        if not self.recorder.sampled and (name, location) in self._told:
            return
        self._told.add((name, location))
        self.recorder.event("collective", location=location, detail=detail)

    def _content(self, tensor: Tensor) -> tuple[str, int] | None:
        """Whether this is a parameter's content or its gradient. Scripts hand over `.data` of either: only storage tells."""
        address = tensor.data_ptr()
        if self._step != self.recorder.step or address not in self._addresses:
            self._addresses = {}
            for number, parameter in self._registry.parameters():
                if is_plain(parameter) and parameter.numel():
                    self._addresses[parameter.data_ptr()] = ("parameter", number)
                if parameter.grad is not None and is_plain(parameter.grad) and parameter.numel():
                    self._addresses[parameter.grad.data_ptr()] = ("gradient", number)
        found = self._addresses.get(address)
        return found if found is not None and tensor.numel() > 1 else None


def _name_of(operation: Any) -> str:
    """`ReduceOp.SUM` is an object of a C++ class whose text ends in its name."""
    return "SUM" if operation is None else str(operation).rpartition(".")[2].strip(" >")
