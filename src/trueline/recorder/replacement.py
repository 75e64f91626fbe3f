"""What stands in for a function of Python's own library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Replacement:
    """Stands in for a builtin. A Python function would not do: kept in a class (`log = print`) it would become a method.

    It equals what it stands in for: `os.chmod in os.supports_follow_symlinks` is asked by `shutil`.
    """

    __wrapped__: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> Any:
        return self.__wrapped__.__reduce__()

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.__wrapped__

    def __hash__(self) -> int:
        return hash(self.__wrapped__)
