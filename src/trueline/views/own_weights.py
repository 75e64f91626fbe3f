"""Loads that copy a model's weights onto themselves: what was taken for a copy is the model's own tensors."""

from __future__ import annotations

import ast
import re

import msgspec

from trueline.model import Event, Location
from trueline.store import Run
from trueline.views.source import text_of_file

_FROM_MODEL = re.compile(r"([\w.\[\]]+)\.load_state_dict\(\s*([\w.\[\]]+)\.state_dict\(\)")
_FROM_VARIABLE = re.compile(r"\.load_state_dict\(\s*([\w.]+(?:\[[^\]]*\])?)\s*[,)]")


class OwnLoad(msgspec.Struct, frozen=True):
    """`two_names`: the model that is copied and the one that is copied to are one object (or share all tensors). Otherwise a
    dictionary that was kept earlier holds the model's own tensors, which training has changed since."""

    load: Event
    two_names: tuple[str, str] | None
    location: Location | None


def own_load(run: Run) -> OwnLoad | None:
    """The first load after training began that cannot have changed anything, where a copy was meant."""
    trained = min((event.seq for event in run.events_of("optimizer_step")), default=None)
    for load in run.events_of("load"):
        if trained is None or load.seq < trained or not load.detail.get("own") or load.location is None:
            continue
        source = load.location.source or ""
        if found := _FROM_MODEL.search(source):
            to, of = found.groups()
            if to != of and "module" not in source:
                return OwnLoad(load, (to, of), _line_that_equates(run, load.location, to, of) or load.location)
        elif found := _FROM_VARIABLE.search(source):
            kept = _line_that_keeps(run, load.location, found[1].partition("[")[0])
            if kept is not None:
                return OwnLoad(load, None, kept)
    return None


def _line_that_equates(run: Run, near: Location, name: str, value: str) -> Location | None:
    """The one line `name = value` of the file that loads."""
    tree = text_of_file(run, near)
    assignments = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)] if tree is not None else []
    lines = [node for node in assignments if name in map(ast.unparse, node.targets) and ast.unparse(node.value) == value]
    return _location(near, lines[0]) if len(lines) == 1 else None


def _line_that_keeps(run: Run, near: Location, name: str) -> Location | None:
    """The line that keeps a `state_dict()` under a condition that the load is not under: weights to come back to.

    A dictionary that is taken, changed in place and loaded, as for a moving average, is no such.
    """
    tree = text_of_file(run, near)
    for condition in ast.walk(tree) if tree is not None else ():
        if not isinstance(condition, ast.If) or condition.lineno <= near.line <= (condition.end_lineno or condition.lineno):
            continue
        for node in ast.walk(condition):
            if (
                isinstance(node, ast.Assign)
                and ast.unparse(node.value).endswith(".state_dict()")
                and name in {ast.unparse(target).partition("[")[0] for target in node.targets}
            ):
                return _location(near, node)
    return None


def _location(near: Location, statement: ast.Assign) -> Location:
    return Location(near.file, statement.lineno, None, None, ast.unparse(statement))
