"""Framework-neutral kinds and settings of torch modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.modules.loss import _Loss

_KINDS: list[tuple[str, tuple[type, ...]]] = [
    ("linear", (nn.Linear, nn.Bilinear, nn.LazyLinear)),
    ("conv", (_ConvNd,)),
    ("norm", (_InstanceNorm, nn.GroupNorm, nn.LocalResponseNorm, nn.RMSNorm)),
    ("batch_norm", (_BatchNorm,)),
    ("layer_norm", (nn.LayerNorm,)),
    ("dropout", (_DropoutNd,)),
    ("embedding", (nn.Embedding, nn.EmbeddingBag)),
    ("recurrent", (nn.RNNBase, nn.RNNCellBase)),
    ("attention", (nn.MultiheadAttention,)),
    ("softmax", (nn.Softmax, nn.Softmax2d)),
    ("log_softmax", (nn.LogSoftmax,)),
    ("sigmoid", (nn.Sigmoid,)),
    ("loss", (_Loss,)),
    ("flatten", (nn.Flatten, nn.Unflatten)),
    ("identity", (nn.Identity,)),
    ("container", (nn.Sequential, nn.ModuleList, nn.ModuleDict)),
]
_SCALARS = (bool, int, float, str)


def kind_of(module: nn.Module) -> str:
    for kind, types in _KINDS:
        if isinstance(module, types):
            return kind
    package = type(module).__module__
    if package == "torch.nn.modules.activation":
        return "activation"
    if package == "torch.nn.modules.pooling":
        return "pool"
    return "other"


def settings_of(module: nn.Module) -> dict[str, Any]:
    """The scalar settings of a module (sizes, eps, momentum, p …), and which optional parameters it has."""
    settings = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "training" and _is_setting(value)
    }
    for name, parameter in module._parameters.items():
        if parameter is None:
            settings[f"has_{name}"] = False
    return settings


def _is_setting(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) <= 8 and all(isinstance(part, _SCALARS) for part in value)
    return value is None or isinstance(value, _SCALARS)


def drops_units(module: nn.Module) -> bool:
    """Whether a module drops values at random in training mode."""
    if isinstance(module, _DropoutNd):
        return module.p > 0
    if isinstance(module, nn.RNNBase):
        return module.dropout > 0 and module.num_layers > 1
    return isinstance(module, nn.MultiheadAttention) and module.dropout > 0


def drop_nothing(module: nn.Module) -> None:
    """Switch off what a module drops by itself; dropout modules go through the functions that are watched."""
    if isinstance(module, nn.RNNBase | nn.MultiheadAttention):
        module.dropout = 0.0


def uses_batch_statistics(module: nn.Module) -> bool:
    """Whether a module normalises with the batch's own statistics in training mode only."""
    return isinstance(module, _BatchNorm) and not isinstance(module, _InstanceNorm) and module.track_running_stats


def is_uninitialised(parameter: torch.Tensor) -> bool:
    return nn.parameter.is_lazy(parameter)


def is_model(value: Any) -> bool:
    """Whether a variable may hold a model."""
    return isinstance(value, nn.Module)


def parts_of(module: nn.Module) -> list[nn.Module]:
    """A module and all modules inside of it, each once."""
    return list(module.modules())


def modules_of(root: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """All places of a tree with the modules that stand there."""
    yield from root.named_modules(remove_duplicate=False)


def tensors_of(root: nn.Module) -> list[tuple[str, torch.Tensor, bool]]:
    """The parameters and buffers at all places of a tree; the last part tells whether it is a buffer."""
    found: list[tuple[str, torch.Tensor, bool]] = [
        (path, tensor, False) for path, tensor in root.named_parameters(remove_duplicate=False)
    ]
    return found + [(path, tensor, True) for path, tensor in root.named_buffers(remove_duplicate=False)]


def size_of(root: nn.Module) -> int:
    """The bytes of its parameters."""
    return sum(tensor.numel() * tensor.element_size() for tensor in root.parameters() if not is_uninitialised(tensor))
