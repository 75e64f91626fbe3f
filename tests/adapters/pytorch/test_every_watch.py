"""Every watch, called with whatever a hook may hand it: it records that or is taken off; nothing reaches the script."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.adapters.pytorch.test_odd_tensors import ODD
from trueline.adapters.base import Watch
from trueline.adapters.pytorch import PyTorchAdapter
from trueline.recorder import Recorder
from trueline.recorder.watches import KNOWN
from trueline.store import Writer

# Given copies that other watches have made, never what the script has.
_OF_COPIES = {"Registry.note_update"}


def watches_of(holder: Any, seen: set[int]) -> Iterator[Any]:
    """The watches that an adapter has, and those that they have."""
    for value in vars(holder).values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Watch) and id(each) not in seen:
                seen.add(id(each))
                yield each
                yield from watches_of(each, seen)


def guards_of(watch: Any) -> Iterator[Any]:
    for name, value in inspect.getmembers(type(watch)):
        if getattr(value, "__qualname__", None) in KNOWN - _OF_COPIES and hasattr(value, "__wrapped__"):
            yield getattr(watch, name)


# What was freed is handed over where tensors are, not where times and numbers are: see test_odd_tensors.py.
@pytest.mark.parametrize("name", sorted(ODD.keys() - {"freed", "freed and large"}))
def test_every_watch_bears_it(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(lambda: Writer(tmp_path, 0), str(tmp_path), budget=0.05)
    recorder.start(framework="pytorch")
    adapter = PyTorchAdapter(recorder)
    called = set()
    for watch in watches_of(adapter, set()):
        for guard in guards_of(watch):
            parameters = list(inspect.signature(guard).parameters.values())
            made = ODD[name]()
            # What one call has broken must not keep the next from being made.
            recorder.off.clear()
            guard(
                *(made for each in parameters if each.kind is not each.KEYWORD_ONLY),
                **{each.name: made for each in parameters if each.kind is each.KEYWORD_ONLY},
            )
            called.add(guard.__qualname__)
            assert not recorder.busy
    assert recorder.active
    assert recorder.failure is None
    assert torch.overrides._len_torch_function_stack() == 0
    # Most of them are met this way: those of `record/` have tests of their own.
    assert len(called) > 50
    assert "off" in capsys.readouterr().err
    recorder.close()
