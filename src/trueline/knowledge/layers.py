"""The settings of layers that change what they compute, under one name and with one meaning for both frameworks.

Conventions that differ, and what is made of them here:

- The momentum of BatchNorm is the weight of the new batch (PyTorch's 0.1); MindSpore's cells are given one minus that.
- `epsilon` is `eps`; `keep_prob` is one minus the share that is dropped.
- MindSpore pads a convolution by mode: `valid` pads nothing, `pad` the numbers that are given, `same` by the size of the input.
- GELU has a form with erf and one with tanh: PyTorch's `approximate='none'` and `'tanh'`, MindSpore's False and True, its
  default.
"""

from __future__ import annotations

import re
from typing import Any

from trueline.model import Module

# By kind: the settings that are compared as they are.
_PLAIN = {
    "batch_norm": ("eps", "momentum"),
    "layer_norm": ("eps",),
    "norm": ("eps", "num_groups", "alpha", "beta", "k", "size"),
    "conv": ("stride", "dilation", "groups", "padding_mode"),
    "dropout": ("p",),
    "embedding": ("padding_idx", "max_norm", "scale_grad_by_freq"),
    "recurrent": ("num_layers", "bidirectional", "dropout", "proj_size"),
    "attention": ("num_heads", "dropout", "add_zero_attn"),
    "activation": ("negative_slope", "threshold", "lambd", "lower", "upper", "min_val", "max_val"),
    "pool": ("ceil_mode", "count_include_pad"),
}
_BARE_WINDOW = ("kernel_size", "stride")
# The same layer under the names of both frameworks.
_SAME_TYPE = {
    "dense": "linear",
    "silu": "silu",
    "swish": "silu",
    "hswish": "hardswish",
    "hsigmoid": "hardsigmoid",
    "fastgelu": "gelu",
}


def layer_settings(module: Module) -> dict[str, Any]:
    """What can be compared of a layer, by neutral names."""
    settings = module.settings
    found = {name: plain_value(settings[name]) for name in _PLAIN.get(module.kind, ()) if name in settings}
    if module.kind == "conv":
        found["padding"] = _padding(settings)
    if module.kind == "activation":
        kind = module.type.lower().removesuffix("ext")
        found["type"] = _SAME_TYPE.get(kind, kind)
        if found["type"] == "gelu":
            found["form"] = gelu_form(settings.get("approximate"))
        if "alpha" in settings:
            found["negative_slope" if kind == "leakyrelu" else "alpha"] = settings["alpha"]
    if module.kind == "pool":
        found["type"] = module.type.lower().removesuffix("ext")
        found |= {name: _window(settings[name]) for name in _BARE_WINDOW if settings.get(name) is not None}
    return found


def same_layer(mine: str, reference: str) -> bool:
    """Whether two types of layers compute the same, in either framework."""
    own, expected = (re.sub(r"(ext|\d+d|transpose|_)+", "", name.lower()) for name in (mine, reference))
    return _SAME_TYPE.get(own, own) == _SAME_TYPE.get(expected, expected)


def gelu_form(approximate: Any) -> str:
    return "tanh" if approximate in (True, "tanh") else "erf"


def plain_value(value: Any) -> Any:
    """One number for all axes says the same as that number for each."""
    if isinstance(value, list | tuple):
        return value[0] if value and all(part == value[0] for part in value) else list(value)
    return value


def _window(value: Any) -> Any:
    parts = [part for part in value if part != 1] if isinstance(value, list | tuple) and len(value) == 4 else value
    return plain_value(parts)


def _padding(settings: dict[str, Any]) -> Any:
    """The padding as a number for all sides, or a list of them."""
    mode = settings.get("pad_mode")
    if mode == "valid":
        return 0
    if mode == "same":
        return "same"
    padding = settings.get("padding", 0)
    return plain_value(padding) if not isinstance(padding, str) else (0 if padding == "valid" else padding)
