"""A view of a run knows which parts of the record were read, and what of those is not complete."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from builders import build_run

from trueline.model.parts import EVENTS, PARTS
from trueline.store import Run, RunBeingRead
from trueline.store.reading import _GIVES

# Of the run as a whole, not of what happened in it.
_NOTHING_RECORDED = {"meta", "unseen", "alignment", "failed_watches", "failed_anywhere", "framework"}


def failed(*parts: str) -> dict[str, list[Any]]:
    """The rows of a record in which a watch failed for each of these."""
    told = [{"watch": f"of {part}", "parts": [part], "step": 1, "error": "TypeError: odd"} for part in parts]
    return {"meta": [("failed_watches", json.dumps(told))]}


def test_every_property_of_a_run_is_known_to_give_something() -> None:
    properties = {
        name for name, value in vars(Run).items() if isinstance(value, property | cached_property) and not name.startswith("_")
    }
    assert properties - _NOTHING_RECORDED == set(_GIVES)
    assert {part for parts in _GIVES.values() for part in parts} <= set(PARTS)


READ: dict[str, tuple[Callable[[Run], Any], set[str]]] = {
    "steps": (lambda run: run.steps, {"step"}),
    "parameters, named after modules": (lambda run: run.parameters, {"parameter", "module"}),
    "roots": (lambda run: run.roots, {"module"}),
    "all events": (lambda run: run.events, set(EVENTS)),
    "events of two kinds": (lambda run: run.events_of("seed", "clip"), {"event:seed", "event:clip"}),
    "outputs": (lambda run: run.stats("output"), {"stat:output"}),
    "gradients of one": (lambda run: run.stats("gradient", 1), {"stat:gradient"}),
    "the framework": (lambda run: run.framework, set()),
    "a run beside": (lambda run: run.beside(run.directory).snapshots, {"snapshot"}),
    "another rank": (lambda run: run.of_rank(0).batches, {"batch"}),
}


@pytest.mark.parametrize("what", READ)
def test_what_is_read_and_not_complete(what: str, tmp_path: Path) -> None:
    run = Run(build_run(tmp_path / "run", [1.0, 0.5], rows=failed(*PARTS)))
    read, parts = READ[what]
    for _ in range(2):
        view = RunBeingRead(run)
        read(view)
        # The second time it is known already, and counts all the same.
        assert set(view.missing) == {f"of {part}" for part in parts}
    run.close()


def test_the_same_is_read(tmp_path: Path) -> None:
    run = Run(build_run(tmp_path / "run", [1.0, 0.5]))
    view = RunBeingRead(run)
    assert view.steps is run.steps
    assert view.events_of("backward") == run.events_of("backward") != []
    assert view.stats("output") == run.stats("output")
    assert view.missing == {}
    run.close()
