"""Record a function in this process, and read what was recorded of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mindspore as ms
import pytest

from trueline.launch import record
from trueline.store import Run

Recorded = Callable[..., Run]


@pytest.fixture(autouse=True)
def _runs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs go to the test's own folder; PyNative mode and one seed, whatever ran before."""
    monkeypatch.setenv("TRUELINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("RANK", raising=False)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_seed(0)
    yield
    ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """`recorded(train)`: the run of calling `train`; further arguments go to `trueline.record`."""
    opened: list[Run] = []

    def of(train: Callable[[], object], **settings: Any) -> Run:
        with record(name=f"run{len(opened)}", **settings) as recording:
            train()
        run = Run(recording.directory)
        opened.append(run)
        assert run.info.recorder_error is None
        return run

    yield of
    for run in opened:
        run.close()
