"""Trueline finds where and why a deep-learning training run goes wrong, from the unmodified script."""

__version__ = "0.1.0"

__all__ = ["__version__", "record"]

from typing import Any


def __getattr__(name: str) -> Any:
    # Imported when asked for: the command line must not pay for it, and `trueline.launch` needs `__version__` first.
    if name == "record":
        from trueline.launch import record

        return record
    raise AttributeError(f"module 'trueline' has no attribute {name!r}")
