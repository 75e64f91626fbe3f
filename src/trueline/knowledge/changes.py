"""How a setting of a layer is given in each framework's own words."""

from __future__ import annotations

from typing import Any


def change_of(framework: str | None, kind: str, type_name: str, setting: str, value: Any) -> str | None:
    """The call to write to give a layer of mine this setting; None where nothing is known beyond the setting's name."""
    if framework == "mindspore":
        return _mindspore(kind, type_name, setting, value)
    return _pytorch(kind, type_name, setting, value)


def _mindspore(kind: str, type_name: str, setting: str, value: Any) -> str | None:
    if setting == "form":
        return f"nn.GELU(approximate={value == 'tanh'})"
    if kind == "batch_norm" and setting == "momentum" and isinstance(value, float):
        # Cells are given the weight of what was before.
        return f"nn.{type_name}(…, momentum={1 - value:.6g})"
    if kind == "layer_norm" and setting == "eps":
        return f"nn.{type_name}(…, epsilon={value})"
    if kind == "conv" and setting == "padding" and value != "same":
        return f'nn.{type_name}(…, pad_mode="pad", padding={value})'
    if setting == "bias":
        return f"nn.{type_name}(…, has_bias={value == 'present'})"
    return _named(type_name, setting, value)


def _pytorch(kind: str, type_name: str, setting: str, value: Any) -> str | None:
    if setting == "form":
        return f"nn.GELU(approximate={'tanh' if value == 'tanh' else 'none'!r})"
    if setting == "bias" and kind in {"linear", "conv", "layer_norm", "recurrent"}:
        return f"nn.{type_name}(…, bias={value == 'present'})"
    return _named(type_name, setting, value)


def _named(type_name: str, setting: str, value: Any) -> str | None:
    if setting in {"eps", "momentum", "p", "stride", "dilation", "groups", "padding", "negative_slope", "dropout"}:
        return f"nn.{type_name}(…, {setting}={value})"
    return None
