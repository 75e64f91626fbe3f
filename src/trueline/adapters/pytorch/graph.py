"""The operations of the first training steps: what flows from where to where, with the user's line of each.

A torch function mode sees every call of torch's API that the script makes, with its arguments, and calls it as it is. It
is on from a step's first root call to its backward pass, on the first steps only.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

from trueline.adapters.base import guarded
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.tensors import dtype_name, tensors_in
from trueline.adapters.shared.trace import Trace, index_text
from trueline.recorder import Recorder

# Operations without a tensor result that still take values out of the graph.
_CUTS = {"numpy", "item", "tolist", "__array__"}
_SCALARS = (bool, int, float, str)
_POSITIONAL = {
    "softmax": ("dim",),
    "log_softmax": ("dim",),
    "argmax": ("dim",),
    "sum": ("dim",),
    "mean": ("dim",),
    "cat": ("dim",),
    "dropout": ("p", "training"),
    "transpose": ("dim0", "dim1"),
    "leaky_relu": ("negative_slope",),
}


class OpTrace(Trace):
    """Records the operations of a step while it is on; knows which tensor came from which operation."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder, registry, dtype_name)
        self._mode: _Mode | None = None
        self._parked = False

    # The window

    def begin(self, fed: list[tuple[int | None, Tensor]]) -> None:
        """A root call starts on a step that is traced, fed with these tensors of these batches."""
        if self._mode is None:
            if torch.overrides._len_torch_function_stack() > 0:
                return
            self._mode = _Mode(self)
            self._mode.__enter__()  # type: ignore[no-untyped-call]
            self._parked = False
        self.feed(fed)

    def end(self) -> None:
        """The backward pass starts, or the step is over: stop, and record which results were never used."""
        if self._mode is not None:
            stack = torch.overrides._get_current_function_mode_stack()
            if stack and stack[-1] is self._mode:
                self._mode.__exit__(None, None, None)
                self._mode = None
            else:
                # The script is inside of a mode of its own that it entered after ours: ours stays below it, idle.
                self._parked = True
        self.write()

    @property
    def is_on(self) -> bool:
        return self._mode is not None and not self._parked

    @guarded
    def called(self, function: Any, args: Any, kwargs: Any, output: Any) -> None:
        if self.is_full or not self.is_on:
            return
        name = _neutral_name(function)
        outputs = tensors_in(output)
        if (not outputs and name not in _CUTS) or name in {"grad", "requires_grad_", "device", "dtype", "shape"}:
            return
        inplace = function.__name__.rstrip("_") != function.__name__ and not function.__name__.startswith("__")
        settings = _settings(name, args, kwargs)
        if inplace or function.__name__.startswith("__i"):
            settings["inplace"] = True
        self.note(name, _inputs(args, kwargs), outputs, settings, _needs_gradient)


def _needs_gradient(tensor: Tensor) -> bool:
    return tensor.requires_grad


class _Mode(TorchFunctionMode):
    def __init__(self, trace: OpTrace) -> None:
        super().__init__()
        self._trace = trace

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if self._trace.is_on and not self._trace.recorder.busy:
            self._trace.called(func, args, kwargs or {}, output)
        return output


def _neutral_name(function: Any) -> str:
    """`torch.Tensor.__radd__` → `add`, `torch.nn.functional.relu_` → `relu`, the getter of `Tensor.data` → `data`."""
    if function.__name__ == "__get__":
        name = (resolve_name(function) or "").removesuffix(".__get__").rpartition(".")[2]
        return name or "get"
    name = str(function.__name__)
    if name in _CUTS:
        return name
    if name.startswith("__") and name.endswith("__"):
        name = name.strip("_")
        if name in {
            "radd",
            "rsub",
            "rmul",
            "rdiv",
            "rtruediv",
            "rpow",
            "rmatmul",
            "iadd",
            "isub",
            "imul",
            "idiv",
            "itruediv",
            "ipow",
        }:
            name = name[1:]
    return name.rstrip("_") if not name.startswith("__") else name


def _inputs(args: Any, kwargs: Any) -> list[Tensor]:
    return tensors_in((args, kwargs), most=64)


def _settings(name: str, args: Any, kwargs: Any) -> dict[str, Any]:
    scalars = [value for value in args if value is None or isinstance(value, _SCALARS) or _is_shape(value)]
    settings = {key: value for key, value in kwargs.items() if isinstance(value, _SCALARS) or _is_shape(value)}
    names = _POSITIONAL.get(name, ())
    for key, value in zip(names, scalars, strict=False):
        settings.setdefault(key, value)
    if len(scalars) > len(names):
        settings["args"] = scalars[len(names) :]
    settings.update({key: "tensor" for key, value in kwargs.items() if isinstance(value, Tensor) and "mask" in key})
    mask = kwargs.get("key_padding_mask")
    if isinstance(mask, Tensor) and mask.dim() == 2 and mask.is_cpu and mask.numel():
        settings["masked_ends"] = _masked_ends(mask)
    if name == "scaled_dot_product_attention" and len(args) > 3 and isinstance(args[3], Tensor):
        settings["attn_mask"] = "tensor"
    if name == "getitem" and len(args) > 1:
        settings["index"] = index_text(args[1], _kind_of_index)
    return settings


def _masked_ends(mask: Tensor) -> list[float]:
    """The shares of sequences whose first and whose last step attention is told to leave out."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        ends = mask.detach()[:, [0, -1]]
        masked = ends if ends.dtype is torch.bool else ends == -torch.inf
        return [float(share) for share in masked.double().mean(0)]


def _kind_of_index(value: Any) -> str:
    if isinstance(value, Tensor):
        return "mask" if value.dtype is torch.bool else "tensor"
    return type(value).__name__


def _is_shape(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) <= 8 and all(isinstance(part, int) for part in value)
