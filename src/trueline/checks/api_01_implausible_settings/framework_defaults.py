"""Layers left at defaults of MindSpore that are others in PyTorch: who ports a script layer by layer does not write them down."""

from __future__ import annotations

import re

from trueline.checks.api_01_implausible_settings.odd_layers import NORMS, Oddity
from trueline.model import Evidence, Location, Module
from trueline.store import Run
from trueline.views.dataflow import Trace, plain
from trueline.views.parameters import listed

_WRITTEN = re.compile(r"\b(pad_mode|has_bias|padding)\b")
# What adds a bias of its own, or takes away what a bias adds.
_TAKES_BIAS = frozenset("batch_norm layer_norm group_norm instance_norm norm add bias_add sub".split())
_TORCH_LAYER_NORM = 1e-5
_EPS_OF_MINDSPORE = 1e-7


def convolutions_at_defaults(run: Run) -> list[Oddity]:
    """Convolutions of which nothing but the sizes is written: padded ('same') and without bias here, neither in PyTorch. A
    network none of whose convolutions has a bias, nor a normalisation behind it that has one, cannot shift its thresholds."""
    if run.framework != "mindspore":
        return []
    convolutions = [module for module in run.modules.values() if module.kind == "conv" and module.same_as is None]
    plain_ones = [module for module in convolutions if _is_at_defaults(module)]
    if not plain_ones or len(plain_ones) < len(convolutions) or not _nothing_adds_a_bias(run, plain_ones):
        return []
    first = plain_ones[0]
    where = _place(first)
    names = listed(module.name for module in plain_ones)
    return [
        Oddity(
            f"{names}: left at MindSpore's defaults, pad_mode='same' and has_bias=False. PyTorch's Conv2d does not pad and has a "
            "bias; here no convolution has one, and no normalisation follows that would make up for it.",
            0.6,
            [
                Evidence(
                    f"{module.name} ({module.type}): pad_mode={module.settings.get('pad_mode')!r}, "
                    f"has_bias={module.settings.get('has_bias')}, kernel {module.settings.get('kernel_size')}.",
                    {"module": module.name, "pad_mode": module.settings.get("pad_mode"), "has_bias": False},
                    location=_place(module),
                )
                for module in plain_ones[:4]
            ],
            where,
            "Write down what is meant: pad_mode='valid' (or 'pad' with padding=…) and has_bias=True, as in PyTorch, or "
            "pad_mode='same' and has_bias=False where both are on purpose.",
        )
    ]


def other_defaults(run: Run) -> str | None:
    """What is left at defaults that differ from PyTorch's and is harmless in itself: told, not reported."""
    if run.framework != "mindspore":
        return None
    modules = [module for module in run.modules.values() if module.same_as is None]
    told = []
    gelu = [module.name for module in modules if module.type == "GELU" and module.settings.get("approximate") in (True, "tanh")]
    if gelu:
        told.append(f"GELU approximated by tanh ({listed(gelu)}), exact in PyTorch")
    norms = [module.name for module in modules if module.settings.get("epsilon") == _EPS_OF_MINDSPORE]
    if norms:
        told.append(f"LayerNorm epsilon {_EPS_OF_MINDSPORE:g} ({listed(norms)}), {_TORCH_LAYER_NORM:g} in PyTorch")
    padded = [module.name for module in modules if module.kind == "conv" and _is_at_defaults(module)]
    if padded:
        told.append(f"convolutions padded ('same') and without bias ({listed(padded)}), neither in PyTorch")
    return "; ".join(told) or None


def _is_at_defaults(module: Module) -> bool:
    written = (module.built.source or "") if module.built is not None else ""
    kernel = module.settings.get("kernel_size")
    larger = isinstance(kernel, list | tuple) and any(isinstance(size, int) and size > 1 for size in kernel)
    whole_call = "(" in written and written.count("(") == written.count(")")
    default = module.settings.get("pad_mode") == "same" and module.settings.get("has_bias") is False
    return default and larger and whole_call and not _WRITTEN.search(written)


def _nothing_adds_a_bias(run: Run, convolutions: list[Module]) -> bool:
    roots = {module.root for module in convolutions}
    if any(module.kind in NORMS for module in run.modules.values() if module.root in roots):
        return False
    trace = Trace(run)
    numbers = {module.id for module in convolutions}
    behind = [
        later
        for op in trace.ops.values()
        if op.module in numbers
        for later in trace.consumers.get(op.seq, [])
        if later.module not in numbers
    ]
    return not any(plain(op.name) in _TAKES_BIAS for op in behind)


def _place(module: Module) -> Location | None:
    where = module.built or module.called
    return None if where is None else where.of_module(module.name)
