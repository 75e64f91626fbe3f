"""Libraries that only some datasets need, imported when the first of those is met."""

from __future__ import annotations

import importlib
from typing import Any

from trueline.errors import TruelineError


def require(module: str, purpose: str, extra: str = "data") -> Any:
    """The module, or an error that says what to install: `require("pyarrow.csv", "to read CSV files")`."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        package = module.partition(".")[0]
        raise TruelineError(
            f"{package} is needed {purpose} and cannot be imported ({problem}). Install it with: pip install 'trueline[{extra}]'"
        ) from problem
