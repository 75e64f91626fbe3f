"""The line that says how many epochs a script trains for, found in its source around the line that calls the model."""

from __future__ import annotations

import ast
import re
from collections import Counter

from trueline.model import Location
from trueline.store import Run
from trueline.views.calls import CallRoles
from trueline.views.source import script_text, text_around

# How loops of libraries are told their number of epochs.
_LIBRARY_CALL = re.compile(r"\bmodel\w*\.(train|fit)\(\s*(\d|[A-Za-z_.]*(epoch|num)|[A-Z])", re.IGNORECASE)
_LIBRARY_ARGUMENT = re.compile(r"\b(max_epochs|num_train_epochs)\s*=")


def epoch_loop(run: Run) -> Location | None:
    """The outermost counting loop around the training calls, in their function or in one that calls it."""
    lines = Counter(
        trained.call.location for calls in CallRoles(run).training.values() for trained in calls if trained.call.location
    )
    # The model may be called in a function that somebody else calls, as gradient functions do: then the optimizer's line tells.
    stepped = Counter(event.location for event in run.events_of("optimizer_step") if event.location)
    for location, _ in lines.most_common(1) + stepped.most_common(1):
        text = text_around(run, location)
        if text is None:
            continue
        if _LIBRARY_CALL.search(location.source or ""):
            return location
        loop = _loop_around(text.tree, location)
        if loop is not None:
            return Location(location.file, loop, source=text.line(loop))
    return _library_argument(run)


def _loop_around(tree: ast.Module, location: Location) -> int | None:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    line, seen = location.line, set[str]()
    found: int | None = None
    # Each round goes from the function that holds the line to the one that calls it; what calls itself ends the search.
    for _ in range(6):
        inside = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
        function = max(inside, key=lambda node: node.lineno, default=None)
        loops = [
            node
            for node in ast.walk(function or tree)
            if isinstance(node, ast.For | ast.While) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        counted = [node for node in loops if isinstance(node, ast.For) and _counts(node)]
        if counted:
            found = min(node.lineno for node in counted)
        if function is None or function.name in seen:
            break
        seen.add(function.name)
        calls = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) == function.name]
        outside = [number for number in calls if not function.lineno <= number <= (function.end_lineno or 0)]
        if not outside or found is not None:
            break
        line = outside[0]
    return found


def _counts(loop: ast.For) -> bool:
    """Whether a loop runs over numbers rather than over batches."""
    if not isinstance(loop.iter, ast.Call):
        return False
    if _name(loop.iter.func) in ("range", "trange", "count"):
        # `for i in range(0, len(x), size)` makes batches.
        return len(loop.iter.args) < 3
    return any(isinstance(part, ast.Call) and _name(part.func) == "range" for part in loop.iter.args)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def _library_argument(run: Run) -> Location | None:
    script = run.info.script
    if not script:
        return None
    lines = (script_text(run) or "").split("\n")
    told = [number for number, line in enumerate(lines, 1) if _LIBRARY_ARGUMENT.search(line)]
    return Location(script, told[0], source=lines[told[0] - 1].strip()) if len(told) == 1 else None
