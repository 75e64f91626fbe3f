"""What is watched of modules beside their calls: where they are built, their modes, and dropout that ignores those."""

from __future__ import annotations

import sys
from threading import get_ident
from types import FrameType
from typing import Any

from trueline.adapters.base import Watch, guarded
from trueline.adapters.shared.registry import Registry
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

_MOST_FORCED_DROPOUTS = 200


class ModuleWatch(Watch):
    """The part of the watch of modules that does not depend on how a framework calls them."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._modules = registry
        self._thread: int | None = None
        self._changing_mode = False
        self._forced_dropouts = 0

    def _is_training_thread(self) -> bool:
        """The first thread that calls a module is the one that is recorded."""
        if self._thread is None:
            self._thread = get_ident()
        return self._thread == get_ident()

    def _install_construction(self, patches: Patches, kind: Any) -> None:
        original = kind.__init__
        watch = self

        def __init__(module: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(module, *args, **kwargs)
            if watch.recorder.active:
                watch._built(module)

        patches.replace(kind, "__init__", __init__)

    @guarded
    def _built(self, module: Any) -> None:
        """Note the line that builds the module: the first user frame that is not the module's own `__init__`."""
        sites = self.recorder.call_sites
        frame = sites.user_frame(sys._getframe(1))
        while frame is not None and frame.f_code.co_name == "__init__" and _first_argument(frame) is module:
            frame = sites.user_frame(frame.f_back)
        self._modules.built[module] = sites.of_frame(frame)

    def _install_mode(self, patches: Patches, kind: Any, name: str) -> None:
        """Watch the method that sets a module and all its parts to training or evaluation."""
        original = getattr(kind, name)
        watch = self

        def set_mode(module: Any, mode: bool = True) -> Any:  # noqa: FBT001, FBT002 - the frameworks' own signature
            if watch._changing_mode or not watch.recorder.active:
                return original(module, mode)
            watch._changing_mode = True
            try:
                result = original(module, mode)
            finally:
                watch._changing_mode = False
            watch._mode_set(module, mode)
            return result

        patches.replace(kind, name, set_mode)

    @guarded
    def _mode_set(self, module: Any, mode: bool) -> None:  # noqa: FBT001 - as handed over by the framework
        subject = self._modules.module_id(self._subject_of(module))
        self.recorder.event("mode", subject=subject, value=float(mode), location=self.recorder.location())

    def _subject_of(self, module: Any) -> Any:
        """The module that a change of the mode is noted for."""
        return module

    @guarded
    def _dropout_forced(self) -> None:
        if self._forced_dropouts < _MOST_FORCED_DROPOUTS:
            self._forced_dropouts += 1
            self.recorder.event("functional_dropout", value=1.0, location=self.recorder.location())


def _first_argument(frame: FrameType) -> Any:
    """What a method is called on, whatever its author calls it."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
