"""Running a script that asks for graph mode operation by operation, so that all of it can be watched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import mindspore as ms
from mindspore import context

from trueline.recorder.patches import Patches


def force_pynative(patches: Patches, asked: Callable[[], None]) -> None:
    """Let `set_context` and `ms.jit` of the script have no effect on how it runs; `asked` is told when one would have had one.
    The framework's own compiled parts stay."""
    original_context: Any = context.set_context
    original_mode: Any = getattr(context, "_set_mode", None)
    original_jit: Any = ms.jit

    def set_context(**kwargs: Any) -> None:
        if kwargs.get("mode") == context.GRAPH_MODE:
            asked()
            kwargs["mode"] = context.PYNATIVE_MODE
        original_context(**kwargs)

    def jit(function: Any = None, **options: Any) -> Any:
        asked()
        return function if function is not None else lambda given: given

    for owner in (ms, context):
        patches.replace(owner, "set_context", set_context)
    for owner in (ms, ms.common, sys.modules["mindspore.graph.api"]):
        if vars(owner).get("jit") is original_jit:
            patches.replace(owner, "jit", jit)
    if original_mode is not None and context._get_mode() == context.GRAPH_MODE:
        asked()
        original_context(mode=context.PYNATIVE_MODE)
