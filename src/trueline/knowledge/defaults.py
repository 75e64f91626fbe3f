"""What a framework does where nothing is said, asked of the installed version."""

from __future__ import annotations

from functools import cache
from typing import Any

from trueline.adapters import default_layer
from trueline.knowledge.layers import layer_settings

# The least that a class of layers has to be given; all else is left to its defaults.
_LEAST: dict[str, tuple[Any, ...]] = {
    "linear": (1, 1), "conv": (1, 1, 1), "batch_norm": (1,), "layer_norm": ((1,),), "embedding": (1, 1), "recurrent": (1, 1),
    "attention": (1, 1), "dropout": (), "activation": (), "pool": (1,),
}  # fmt: skip


@cache
def default_settings(framework: str, kind: str, type_name: str) -> dict[str, Any]:
    """The settings of a layer of this class that was given no more than it needs; empty where it cannot be made."""
    if kind not in _LEAST:
        return {}
    layer = default_layer(framework, type_name, _LEAST[kind])
    return {} if layer is None else layer_settings(layer)
