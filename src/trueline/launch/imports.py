"""Being told when a framework has been imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any


class ImportHook(importlib.abc.MetaPathFinder):
    """Calls back with the name of a watched package once its import is complete."""

    def __init__(self, names: Iterable[str], imported: Callable[[str], None]) -> None:
        self._waiting = set(names)
        self._imported = imported
        self._looking = False

    def install(self) -> None:
        """Start to wait; packages that are imported already are announced at once."""
        sys.meta_path.insert(0, self)
        for name in sorted(self._waiting & set(sys.modules)):
            self._announce(name)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def _announce(self, name: str) -> None:
        if name in self._waiting:
            self._waiting.discard(name)
            self._imported(name)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._waiting or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking = False
        if spec is None or spec.loader is None:
            return None
        spec.loader = _AnnouncingLoader(spec.loader, lambda: self._announce(fullname))
        return spec


class _AnnouncingLoader(importlib.abc.Loader):
    """Loads as the loader it wraps does, then says so."""

    def __init__(self, loader: Any, announce: Callable[[], None]) -> None:
        self._loader = loader
        self._announce = announce

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module must not keep a loader of ours: importlib.resources and friends ask it for more than we offer.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._announce()
