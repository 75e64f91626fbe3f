"""Trueline finds where and why a deep-learning training run goes wrong, from the unmodified script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueline.launch import record

__version__ = "0.1.0"

__all__ = ["__version__", "record"]


def __getattr__(name: str) -> Any:
    """`record` is imported when it is asked for: most commands never do."""
    if name != "record":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trueline.launch import record

    return record
