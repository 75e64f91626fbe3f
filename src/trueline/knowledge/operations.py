"""Operations that compute the same under several names, and what they are called among people."""

from __future__ import annotations

from typing import Any

from trueline.knowledge.layers import gelu_form

# What only moves values, or changes their format.
_LAYOUT = frozenset(
    "view reshape transpose permute swapaxes contiguous getitem __getitem__ to type cast astype float half bfloat16 double "
    "expand expand_as broadcast_to flatten split chunk unbind unsqueeze squeeze detach clone size shape stack narrow select "
    "slice movedim view_as reshape_as t mT dropout identity tensor_split expand_dims float16 float32 int long type_as item "
    "arange zeros ones full zeros_like ones_like full_like tril triu eye index_select gather".split()
)
_FAMILIES = {
    "div": "truediv true_divide divide div", "mul": "mul multiply", "add": "add iadd add_", "sub": "sub subtract",
    "matmul": "matmul bmm mm einsum baddbmm", "softmax": "softmax", "mask": "masked_fill masked_fill_ where", "mean": "mean",
    "sum": "sum", "relu": "relu relu_ clamp_min", "silu": "silu swish", "pad": "pad constant_pad_nd",
    "linear": "linear addmm dense", "scaled_dot_product_attention": "scaled_dot_product_attention", "pow": "pow square",
    "concat": "cat concat concatenate",
}  # fmt: skip
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names.split()}
# Families that the same may be written with in other combinations: a product and a sum, or a matrix product.
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "pow", "matmul", "sum", "mean", "linear"})
_WORDS = {
    "add": "an addition, as of a residual connection", "div": "a division that scales", "mul": "a multiplication that scales",
    "mask": "a mask", "pad": "padding", "concat": "a concatenation",
}  # fmt: skip


def family_of(name: str, settings: dict[str, Any]) -> str | None:
    """What an operation computes, whatever it is called; None for what only moves values."""
    if name in _LAYOUT:
        return None
    family = _FAMILY_OF.get(name, name)
    if family == "gelu":
        form = gelu_form(settings.get("approximate", (settings.get("args") or [None])[0] if settings.get("args") else None))
        return f"gelu ({form})"
    return family


def meaning_of(family: str) -> str:
    """In words, with the operation's own name."""
    return f"{_WORDS[family]} (`{family}`)" if family in _WORDS else f"`{family}`"
