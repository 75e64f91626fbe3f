"""The watches that can fail apart from each other, and what of the record is not complete without each.

A watch is a method that is called when something happens in the script, and that records it: `guarded` in the adapters, `noting`
here. It is named `Class.method`; both frameworks have the same names where they watch the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from trueline.model.parts import EVERYTHING

Note = TypeVar("Note", bound=Callable[..., Any])

# All that there are, as their files are imported.
KNOWN: set[str] = set()

PARTS_OF: dict[str, tuple[str, ...]] = {}


def parts_of(watch: str) -> tuple[str, ...]:
    """What is not complete when this watch is off; everything where nobody knows. A whole class that could not be installed
    takes with it what all of its methods record."""
    name, _, method = watch.partition(".")
    if method == "install":
        parts = {part for each in PARTS_OF if each.startswith(f"{name}.") for part in PARTS_OF[each]}
        return tuple(part for part in EVERYTHING if part in parts) or EVERYTHING
    return PARTS_OF.get(watch, EVERYTHING)


def known(method: Callable[..., Any]) -> str:
    """Enter a watch under its name."""
    KNOWN.add(method.__qualname__)
    return method.__qualname__


def noting(method: Note) -> Note:
    """For what watches the script outside of any framework (`recorder`): never raises."""
    name = known(method)

    @functools.wraps(method)
    def note(watch: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = watch.recorder
        if recorder.off and name in recorder.off:
            return None
        try:
            return method(watch, *args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - recording must never break the script
            recorder.contain(name, problem)
            return None

    return note  # type: ignore[return-value]
