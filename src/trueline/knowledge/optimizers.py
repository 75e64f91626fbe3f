"""The settings of optimizers that change an update, under one name and with one meaning for both frameworks.

- Weight decay is added to the gradient (SGD, Adam: L2) or taken from the weights beside it (AdamW, MindSpore's AdamWeightDecay:
  decoupled). With adaptive rates the two differ.
- MindSpore's AdamWeightDecay leaves out the correction of the averages for their start. Its Adam adds eps before that correction,
  PyTorch's afterwards: compare/runs/localise.py allows for that.
- MindSpore's optimizers of `nn` leave parameters whose names hold `beta` or `gamma` out of the decay, unless there are groups.
- Its `nn.Momentum` does not use `use_nesterov` on CPUs (seen in 2.10); updates that are 1 / (1 + momentum) of the others tell.
- MindSpore's Momentum is PyTorch's SGD with momentum; its `use_nesterov` is `nesterov`.
"""

from __future__ import annotations

from typing import Any

_FAMILY = {
    "momentum": "sgd", "sgd": "sgd", "adam": "adam", "adamw": "adam", "adamweightdecay": "adam", "nadam": "nadam",
    "radam": "radam", "adamax": "adamax", "rmsprop": "rmsprop", "adagrad": "adagrad", "adadelta": "adadelta", "lamb": "lamb",
    "rprop": "rprop", "asgd": "asgd", "lars": "lars", "adafactor": "adafactor", "muon": "muon",
}  # fmt: skip
_DECOUPLED = {"adamw", "adamweightdecay", "lamb", "muon"}
_ZERO = ("weight_decay", "momentum", "dampening")
_FALSE = ("nesterov", "amsgrad", "maximize")
_COMPARED = (
    "lr",
    "momentum",
    "dampening",
    "weight_decay",
    "nesterov",
    "betas",
    "eps",
    "amsgrad",
    "maximize",
    "alpha",
    "centered",
)
# What an optimizer does not have says nothing.
_OF_FAMILY = {
    "betas": {"adam", "nadam", "radam", "adamax", "lamb"},
    "eps": {"adam", "nadam", "radam", "adamax", "rmsprop", "lamb"},
}


def optimizer_settings(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """What can be compared of an optimizer's group: `kind` is its class."""
    name = kind.lower()
    family = _FAMILY.get(name, name)
    found: dict[str, Any] = {"type": family}
    for setting in _COMPARED:
        value = values.get(setting)
        if value is None:
            value = 0.0 if setting in _ZERO else False if setting in _FALSE else None
        if value is not None and family in _OF_FAMILY.get(setting, {family}):
            found[setting] = [float(part) for part in value] if isinstance(value, list | tuple) else value
    if found.get("weight_decay"):
        decoupled = name in _DECOUPLED or bool(values.get("decoupled_weight_decay"))
        found["weight_decay_form"] = "decoupled" if decoupled else "in the gradient"
    if family == "adam":
        found["bias_correction"] = name != "adamweightdecay"
    return found
