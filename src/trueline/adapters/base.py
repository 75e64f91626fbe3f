"""What an adapter is: it watches one framework and tells the recorder what happens there.

An adapter is a package `trueline.adapters.<name>` with a class `<name>.ADAPTER` that implements `Adapter`. It is imported
when, and only when, the user's script has imported the framework. Rules that every adapter keeps:

- Losses, weights and random streams stay bit-identical. No autograd nodes, no random numbers drawn, no device waited for.
- Nothing is stored on the user's objects: models are copied, pickled and compiled as if nobody watched.
- Whatever fails inside of a watch is handed to `Recorder.contain`; the user's call and all other watches go on (`guarded`).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from time import perf_counter
from typing import Any, ParamSpec, Protocol, TypeVar

from trueline.model import Module
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches
from trueline.recorder.watches import installed, known

# The package whose import brings an adapter in, and the adapter's package.
FRAMEWORKS = {"torch": "trueline.adapters.pytorch", "mindspore": "trueline.adapters.mindspore"}

__all__ = [
    "FRAMEWORKS", "Adapter", "Watch", "adapter_for", "default_layer", "essential", "guarded", "installed",
]  # fmt: skip

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Adapter(Protocol):
    """One framework, watched."""

    name: str
    version: str

    def __init__(self, recorder: Recorder) -> None: ...

    def install(self) -> None:
        """Start to watch. May be called again after `uninstall`."""

    def uninstall(self) -> None:
        """Leave the framework as it was found."""

    def finish(self, *, completed: bool) -> None:
        """The script has ended, by itself (`completed`) or not: record the state in which it leaves the model."""


def adapter_for(framework: str, recorder: Recorder) -> Adapter:
    """The adapter of an imported framework package."""
    package = importlib.import_module(FRAMEWORKS[framework])
    adapter: Adapter = package.ADAPTER(recorder)
    return adapter


def default_layer(framework: str, type_name: str, arguments: tuple[Any, ...]) -> Module | None:
    """A layer of a framework's class of this name that is given these arguments only, as it would be recorded; None where the
    framework is not installed or has no such class."""
    try:
        kinds = importlib.import_module(f"trueline.adapters.{framework}.kinds")
        made = getattr(kinds.nn, type_name)(*arguments)
    except Exception:  # noqa: BLE001 - whatever a class asks for that it is not given, there is nothing to say then
        return None
    return Module(0, 0, "", "", type_name, kinds.kind_of(made), None, None, None, kinds.settings_of(made))


class Watch:
    """A part of an adapter that tells the recorder what it sees."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def install(self, patches: Patches) -> None:
        """Replace what has to be replaced to see it."""

    def is_off(self, method: Callable[..., Any]) -> bool:
        """Whether this part of the watch has failed before."""
        return method.__qualname__ in self.recorder.off


def guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """For the methods of a Watch that run inside of the user's calls: never raises, and accounts for its own time. One that
    fails is off from then on and gives None, as it does where nothing is recorded; every caller must bear that."""
    name = known(method)

    def failed(recorder: Recorder, problem: Exception) -> None:
        recorder.contain(name, problem)

    return _guard(method, name, failed)


def essential(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same for what ends a step: without it nothing that comes later has its place, and the recording is over."""
    return _guard(method, method.__qualname__, Recorder.fail)


def _guard(method: Callable[..., Any], name: str, failed: Callable[[Recorder, Exception], None]) -> Callable[..., Any]:
    @functools.wraps(method)
    def guard(watch: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = watch.recorder
        if not recorder.active or (recorder.off and name in recorder.off):
            return None
        inside = recorder.busy
        started = 0.0 if inside else perf_counter()
        recorder.busy = True
        try:
            return method(watch, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - recording must never break training
            failed(recorder, problem)
            return None
        finally:
            if not inside:
                recorder.busy = False
                recorder.spent += perf_counter() - started

    return guard
