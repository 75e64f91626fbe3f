"""Every watch of a framework as the code has it, and how to make one fail on purpose."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

from trueline.recorder.watches import KNOWN

# When a watch fails: the first and the third time that it is called, before it has done anything, and after all of it.
MOMENTS = ("first", "third", "after")


class OnPurposeError(RuntimeError):
    """The failure of a watch."""


def load(framework: str) -> None:
    """Import all that watches a framework, so that its watches are known."""
    for package in ("trueline.recorder", f"trueline.adapters.{framework}", "trueline.adapters.shared"):
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(info.name)


def watches(framework: str) -> dict[str, list[Any]]:
    """What is called for each watch, by its name: guarded methods, and the installation of each class."""
    found: dict[str, list[Any]] = {}
    for kind in _classes(framework):
        for name, value in list(vars(kind).items()):
            if getattr(value, "__qualname__", None) in KNOWN and hasattr(value, "__wrapped__"):
                found.setdefault(value.__qualname__, []).append(value)
            elif name in ("install", "install_visible") and kind.__name__.endswith("Watch"):
                found.setdefault(f"{kind.__name__}.install", []).append((kind, name))
    return dict(sorted(found.items()))


def _classes(framework: str) -> Iterator[type]:
    inside = (f"trueline.adapters.{framework}.", "trueline.adapters.shared.", "trueline.recorder.")
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(inside):
            yield from (
                value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
            )


def break_watch(places: list[Any], moment: str) -> None:
    """Let what is called for a watch fail from now on, in this process."""
    for place in places:
        _replace(place, _failing(_original(place), moment))


def count_calls(places: list[Any]) -> Callable[[], int]:
    """Count how often a watch is called from now on, in this process."""
    calls = 0

    def counting(original: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            return original(*args, **kwargs)

        return counted

    for place in places:
        _replace(place, counting(_original(place)))
    return lambda: calls


def _original(place: Any) -> Any:
    return getattr(*place) if isinstance(place, tuple) else _cell(place).cell_contents


def _replace(place: Any, method: Any) -> None:
    # It is not the user's, whose lines are recorded.
    method.__code__ = method.__code__.replace(co_filename="<harness>")
    if isinstance(place, tuple):
        setattr(*place, method)
    else:
        _cell(place).cell_contents = method


def _cell(guard: Any) -> Any:
    """What a guard calls is a name of the function that made it."""
    return guard.__closure__[guard.__code__.co_freevars.index("method")]


def _failing(original: Any, moment: str) -> Any:
    calls = 0

    def failing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if moment == "after":
            original(*args, **kwargs)
        if moment != "third" or calls == 3:
            raise OnPurposeError("on purpose")
        return original(*args, **kwargs)

    return failing
