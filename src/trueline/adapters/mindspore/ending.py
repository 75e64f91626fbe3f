"""The end of the process: cells that outlive python's own modules must not complain about it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from mindspore import nn


def end_quietly() -> None:
    """Keep `Cell.__del__` from printing errors when python is taken apart.

    MindSpore's destructor needs the module `weakref`. Who started the script holds more modules than plain python does, and
    python empties those that are held before it gets to the script's cells. Stays in place after a recording: the cells do.
    """
    original: Any = nn.Cell.__del__
    if not hasattr(original, "__wrapped__"):
        nn.Cell.__del__ = _quiet(original)


def _quiet(original: Callable[[Any], None], is_finalizing: Callable[[], bool] = sys.is_finalizing) -> Any:
    def __del__(cell: Any) -> None:  # noqa: N807 - it replaces that method
        try:
            original(cell)
        except TypeError:
            if not is_finalizing():
                raise

    __del__.__wrapped__ = original  # type: ignore[attr-defined]
    return __del__
