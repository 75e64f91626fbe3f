"""Replacing functions of other modules, and putting everything back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from trueline.recorder.callsite import library_folders

_MISSING = object()


class Patches:
    """A set of replaced attributes that can be undone and done again as one."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._rebound: list[tuple[dict[str, Any], str, Any, Any]] = []

    def replace(self, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
        """Put `wrapper` in the place of `owner.name`. It is dressed up as the original (name, docstring, signature)."""
        own = vars(owner).get(name, _MISSING)
        original = getattr(owner, name)
        if isinstance(wrapper, type):
            wrapper.__wrapped__ = original  # type: ignore[attr-defined]
        else:
            functools.update_wrapper(wrapper, original)
        self._replaced.append((owner, name, own, wrapper))
        setattr(owner, name, wrapper)

    def replacements(self) -> list[tuple[Any, Any]]:
        """What stands in for what: pairs of a wrapper and what it replaced."""
        return [(wrapper, wrapper.__wrapped__) for _, _, _, wrapper in self._replaced]

    def join(self, others: Patches) -> None:
        """Take over the replacements of another set."""
        self._replaced += others._replaced
        others._replaced = []

    def rebind_early_imports(self) -> None:
        """Reach names that the user's modules imported from the framework before it was patched."""
        wrappers = {id(own): wrapper for _, _, own, wrapper in self._replaced if own is not _MISSING}
        libraries = library_folders()
        for module in list(sys.modules.values()):
            # Looked up in `__dict__`: a module's own `__getattr__` may import, warn or raise.
            names = getattr(module, "__dict__", {})
            file = names.get("__file__")
            in_library = not isinstance(file, str) or file.startswith(libraries)
            if in_library and names.get("__name__") != "__main__":
                continue
            for name, value in list(names.items()):
                wrapper = wrappers.get(id(value))
                if wrapper is not None:
                    names[name] = wrapper
                    self._rebound.append((names, name, value, wrapper))

    def undo(self) -> None:
        """Restore every attribute, last replaced first. One that somebody replaced after us is left to them."""
        for names, name, value, wrapper in self._rebound:
            if names.get(name) is wrapper:
                names[name] = value
        for owner, name, own, wrapper in reversed(self._replaced):
            if vars(owner).get(name) is not wrapper:
                continue
            if own is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self._rebound = []
        self._replaced = []
