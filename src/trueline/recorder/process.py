"""What a script does outside of any framework: seeds it sets, lines it prints. Its files: see files.py."""

from __future__ import annotations

import builtins
import random
from typing import Any

import numpy as np

from trueline.recorder.patches import Patches
from trueline.recorder.recorder import Recorder
from trueline.recorder.replacement import Replacement
from trueline.recorder.watches import noting

_MOST_LINES = 5_000
_LONGEST_LINE = 300


class ProcessWatch:
    """Records `seed` and `printed` events."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._lines = 0

    def install(self, patches: Patches) -> None:
        patches.replace(builtins, "print", self._watched_print())
        patches.replace(random, "seed", self._watched_seed("random", random.seed))
        patches.replace(np.random, "seed", self._watched_seed("numpy", np.random.seed))

    def _watched_print(self) -> Any:
        original = builtins.print

        def watched(*values: Any, **kwargs: Any) -> None:
            original(*values, **kwargs)
            if self.recorder.active and not self.recorder.busy and self._lines < _MOST_LINES:
                self._printed(values, kwargs.get("sep"))

        return Replacement(watched)

    @noting
    def _printed(self, values: tuple[Any, ...], separator: str | None) -> None:
        texts = [value for value in values if isinstance(value, str | int | float | np.number)]
        line = (" " if separator is None else separator).join(map(str, texts))
        if not any(character.isdigit() for character in line):
            return
        self._lines += 1
        self.recorder.event("printed", location=self.recorder.location(), detail={"text": line[:_LONGEST_LINE]})

    def _watched_seed(self, library: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._seeded(library, args, kwargs)
            return result

        return Replacement(watched)

    @noting
    def _seeded(self, library: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        note_seed(self.recorder, library, args, kwargs)


def note_seed(recorder: Recorder, library: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record that a library's global random stream was seeded."""
    if recorder.active:
        seed = args[0] if args else next(iter(kwargs.values()), None)
        known = seed if isinstance(seed, int | None) else str(seed)
        recorder.event("seed", location=recorder.location(), detail={"library": library, "seed": known})
