"""Operations that compute the same under several names, and what they are called among people."""

from __future__ import annotations

import re
from typing import Any

from trueline.knowledge.layers import gelu_form, layer_settings, plain_value
from trueline.model import Module

# What only moves values or changes their format, and what masks are made with.
_LAYOUT = frozenset(
    "view reshape transpose permute swapaxes contiguous getitem __getitem__ to type cast astype float half bfloat16 double "
    "expand expand_as broadcast_to flatten split chunk unbind unsqueeze squeeze detach clone size shape stack narrow select "
    "slice movedim view_as reshape_as t mT dropout identity tensor_split expand_dims float16 float32 int long type_as item "
    "cpu numpy empty empty_like new_empty new_zeros new_ones new_full "
    "arange zeros ones full zeros_like ones_like full_like tril triu eye index_select gather unflatten ravel "
    "invert bitwise_not logical_not logical_and logical_or eq ne lt le gt ge bool isnan any all".split()
)
# Attention as one operation; the projections around it are layers.
_ATTENTION = {"scaled_dot_product_attention", "multi_head_attention_forward"}
_FAMILIES = {
    "div": "truediv true_divide divide div", "mul": "mul multiply", "add": "add iadd add_", "sub": "sub subtract",
    "matmul": "matmul bmm mm einsum baddbmm", "softmax": "softmax", "mask": "masked_fill masked_fill_ where", "mean": "mean",
    "sum": "sum", "relu": "relu relu_ clamp_min", "silu": "silu swish", "pad": "pad constant_pad_nd",
    "linear": "linear addmm dense", "pow": "pow square",
    "concat": "cat concat concatenate",
}  # fmt: skip
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names.split()}
# Families that the same may be written with in other combinations: a product and a sum, or a matrix product.
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "scale", "pow", "matmul", "sum", "mean", "linear"})
# What functions that are called by place are given, with what they do where nothing is given.
_POOL = {"kernel_size": None, "stride": None, "padding": 0}
_GIVEN: dict[str, dict[str, Any]] = {
    "avg_pool": {**_POOL, "ceil_mode": False, "count_include_pad": True, "divisor_override": None},
    "max_pool": {**_POOL, "dilation": 1, "ceil_mode": False},
    "leaky_relu": {"negative_slope": 0.01}, "elu": {"alpha": 1.0}, "celu": {"alpha": 1.0},
    "softplus": {"beta": 1.0, "threshold": 20.0}, "hardtanh": {"min_val": -1.0, "max_val": 1.0},
    "clamp": {"min": None, "max": None}, "clip": {"min": None, "max": None},
    "interpolate": {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": False},
    "pad": {"pad": None, "mode": "constant", "value": 0.0}, "normalize": {"p": 2.0, "dim": 1, "eps": 1e-12},
    "group_norm": {"num_groups": None, "eps": 1e-5}, "layer_norm": {"normalized_shape": None, "eps": 1e-5},
    "softmax": {"dim": None}, "log_softmax": {"dim": None}, "sum": {"dim": None}, "mean": {"dim": None}, "cumsum": {"dim": None},
    "glu": {"dim": -1}, "roll": {"shifts": None, "dims": None}, "flip": {"dims": None}, "pixel_shuffle": {"upscale_factor": None},
}  # fmt: skip
_FOR_ANY_NUMBER_OF_AXES = re.compile(r"[123]d$")
# What does not change the numbers.
_UNTOLD = {"inplace", "training", "_stacklevel", "dtype", "recompute_scale_factor", "antialias", "args", "fed", "keepdim"}
_FUNCTIONS = {"leakyrelu": "leaky_relu", "logsoftmax": "log_softmax", "logsigmoid": "log_sigmoid"}
_WORDS = {
    "add": "an addition, as of a residual connection", "scale": "a multiplication or division that scales",
    "mask": "a mask", "pad": "padding", "concat": "a concatenation",
}  # fmt: skip


def families_of(name: str, settings: dict[str, Any]) -> list[str]:
    """What an operation computes, whatever it is called; nothing for what only moves values."""
    if name in _LAYOUT:
        return []
    if name in _ATTENTION:
        masked = any(settings.get(name) for name in ("is_causal", "attn_mask", "key_padding_mask", "masked_ends"))
        return ["matmul", "scale", *(["mask"] if masked else []), "softmax", "matmul"]
    family = _FAMILY_OF.get(name, name)
    if family == "gelu":
        form = gelu_form(settings.get("approximate", (settings.get("args") or [None])[0] if settings.get("args") else None))
        return [f"gelu ({form})"]
    return ["scale"] if scale_of(name, settings) is not None else [family]


def function_of(module: Module) -> tuple[str, dict[str, Any]]:
    """An activation that is a layer, as the function that computes the same: its name, and what it is given."""
    settings = layer_settings(module)
    name = str(settings.pop("type"))
    if name == "gelu":
        settings = {"approximate": "tanh" if settings.get("form") == "tanh" else "none"}
    return _FUNCTIONS.get(name, name), settings


def given_to(name: str, settings: dict[str, Any], dimensions: int | None = None) -> dict[str, Any]:
    """What a function is given, by the names of its arguments, with its defaults. `dimensions`: of what it gives."""
    defaults = _GIVEN.get(_FOR_ANY_NUMBER_OF_AXES.sub("", name), {})
    found = dict(defaults) | dict(zip(defaults, settings.get("args") or [], strict=False))
    found |= {key: value for key, value in settings.items() if key in defaults or isinstance(value, bool | int | float | str)}
    found = {key: plain_value(value) for key, value in found.items() if key not in _UNTOLD}
    if "kernel_size" in found and found.get("stride") is None:
        found["stride"] = found["kernel_size"]
    if "align_corners" in found:
        found["align_corners"] = bool(found["align_corners"])
    for key in ("dim", "dims"):
        if isinstance(found.get(key), int) and found[key] < 0 and dimensions:
            found[key] += dimensions
    return found


def scale_of(name: str, settings: dict[str, Any], shape: list[int] | None = None) -> float | None:
    """The number that an operation multiplies with; None where it does not, or nobody tells. `shape`: that of what it gives."""
    args = settings.get("args") or []
    if name in _ATTENTION:
        width = shape[-1] if shape else None
        if name == "multi_head_attention_forward":
            width = args[0] // args[1] if len(args) > 1 and isinstance(args[0], int) and args[1] else None
        number = settings.get("scale")
        return float(number) if isinstance(number, int | float) else width**-0.5 if width else None
    family = _FAMILY_OF.get(name)
    if family not in {"mul", "div"} or len(args) != 1 or not isinstance(args[0], int | float) or isinstance(args[0], bool):
        return None
    if family == "mul":
        return float(args[0])
    return 1.0 / args[0] if args[0] else None


def meaning_of(family: str) -> str:
    """In words, with the operation's own name."""
    return f"{_WORDS[family]} (`{family}`)" if family in _WORDS else f"`{family}`"
