"""The settings of loss functions that change their value."""

from __future__ import annotations

from typing import Any

from trueline.model import LossCall

# What a loss does where nothing is said, in both frameworks.
_DEFAULTS: dict[str, Any] = {
    "reduction": "mean", "label_smoothing": 0.0, "ignore_index": -100, "weight": None, "pos_weight": None, "beta": 1.0,
    "delta": 1.0, "margin": None, "log_target": False, "log_input": None, "full": False,
}  # fmt: skip


def loss_settings(call: LossCall) -> dict[str, Any]:
    """What can be compared of a loss, with defaults filled in."""
    found = {name: call.settings.get(name, default) for name, default in _DEFAULTS.items()}
    return {"kind": call.kind, **{name: _DEFAULTS[name] if value is None else value for name, value in found.items()}}
