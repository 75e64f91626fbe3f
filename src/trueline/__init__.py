"""Trueline finds where and why a deep-learning training run goes wrong, from the unmodified script."""

__version__ = "0.1.0"

__all__ = ["__version__", "record"]

# Last, and not lazily: importing the package `trueline.record` puts it under this name, and the function must win.
from trueline.launch import record
