"""The text of the user's files as it was when the run was made.

A script is kept with its run. Other files, and scripts that were not kept, are read as they are
now, as far as their lines are those that were recorded.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import decode_source
from pathlib import Path

import msgspec

from trueline.model import Location
from trueline.store import SCRIPT_FILE, Run

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_BYTES = 4 << 20


class Text(msgspec.Struct, frozen=True):
    """A file of Python. Line 1 is the first of `lines`."""

    lines: list[str]
    tree: ast.Module

    def line(self, number: int) -> str:
        return self.lines[number - 1].strip()


def script_text(run: Run) -> str | None:
    """The text of the script that was run, even where it is none that can be parsed."""
    return next(_texts(run, run.info.script), None) if run.info.script else None


def text_of(run: Run, file: str) -> Text | None:
    """A file by the name that locations give it; None when it is gone or cannot be parsed."""
    return next((known for text in _texts(run, file) if (known := _parsed(text)) is not None), None)


def text_around(run: Run, location: Location) -> Text | None:
    """The file that holds the line; None when it is gone or its line is not the recorded one."""
    for text in _texts(run, location.file):
        known = _parsed(text)
        if known is None or not location.source or not 0 < location.line <= len(known.lines):
            continue
        if known.line(location.line) == location.source:
            return known
    return None


def _texts(run: Run, file: str) -> Iterator[str]:
    """What is known of a file: the kept copy first, then the file itself."""
    path = os.path.normpath(Path(run.info.cwd, file))
    script = run.info.script
    if script is not None and path == os.path.normpath(Path(run.info.cwd, script)):
        yield from _read(run.directory / SCRIPT_FILE)
    yield from _read(Path(path))


def _read(path: Path) -> Iterator[str]:
    # Runs from elsewhere may name anything, such as a device without end.
    try:
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            yield decode_source(path.read_bytes())
    except (OSError, ValueError, SyntaxError):
        return


@lru_cache(maxsize=64)
def _parsed(text: str) -> Text | None:
    try:
        return Text(text.split("\n"), ast.parse(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def function_around(run: Run, location: Location) -> Function | None:
    """The innermost function that holds the line."""
    known = text_around(run, location)
    return None if known is None else innermost_function(known.tree, location.line)


def innermost_function(tree: ast.Module, line: int) -> Function | None:
    around = [
        node for node in ast.walk(tree) if isinstance(node, Function) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def statement_at(scope: Function | ast.Module, line: int) -> ast.stmt | None:
    """The smallest statement of a function or file that covers the line."""
    covering = [
        node for node in ast.walk(scope) if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line)
    ]
    return min(covering, key=lambda node: (node.end_lineno or node.lineno) - node.lineno, default=None)


def line_that_sets(run: Run, location: Location, key: str) -> Location | None:
    """The one line of the file of the given one that assigns to a key, as in `group["lr"] = rate`."""
    known = text_around(run, location)
    if known is None:
        return None
    lines = {
        node.lineno
        for node in ast.walk(known.tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == key
    }
    if len(lines) != 1:
        return None
    line = lines.pop()
    return Location(location.file, line, None, None, known.line(line))


def repeated_list_line(run: Run, location: Location) -> Location | None:
    """The one line `[layer] * n` in the function that holds the given line (or, outside of functions, in the file)."""
    known = text_around(run, location)
    scope = function_around(run, location) or (known.tree if known is not None else None)
    if known is None or scope is None:
        return None
    lines = {
        node.lineno
        for node in ast.walk(scope)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and (isinstance(node.left, ast.List) or isinstance(node.right, ast.List))
        and any(isinstance(part, ast.Name | ast.Call | ast.Attribute) for part in ast.walk(node))
    }
    if len(lines) != 1:
        return None
    line = lines.pop()
    return Location(location.file, line, None, location.function, known.line(line))


def line_of_construction(run: Run, location: Location, type_name: str) -> Location | None:
    """The one line that builds an object of this class, in the function that holds the given line or else in the file."""
    known = text_around(run, location)
    if known is None:
        return None
    for scope in (function_around(run, location), known.tree):
        lines = {
            node.lineno
            for node in ast.walk(scope or known.tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == type_name
        }
        if len(lines) == 1:
            line = lines.pop()
            return Location(location.file, line, None, location.function, known.line(line))
    return None


def line_of_parameter(run: Run, location: Location, class_name: str, name: str) -> Location | None:
    """The one line `self.name = …` in a class of the file that holds the given line."""
    known = text_around(run, location)
    classes = [] if known is None else [n for n in ast.walk(known.tree) if isinstance(n, ast.ClassDef) and n.name == class_name]
    lines = {
        node.lineno
        for one in classes
        for node in ast.walk(one)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Attribute) and ast.unparse(target) == f"self.{name}" for target in node.targets)
    }
    if known is None or len(lines) != 1:
        return None
    line = lines.pop()
    return Location(location.file, line, None, "__init__", known.line(line))


def times_read(run: Run, location: Location) -> int | None:
    """How often the variable that the line assigns is read before a later line writes it again; None when that is not known."""
    function = function_around(run, location)
    statement = None if function is None else statement_at(function, location.line)
    if function is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return None
    names = sorted(
        (
            (node.lineno, node.col_offset, isinstance(node.ctx, ast.Store))
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id == target.id and node.lineno > (statement.end_lineno or statement.lineno)
        ),
    )
    rewritten = min((line for line, _, store in names if store), default=None)
    return sum(not store and (rewritten is None or line <= rewritten) for line, _, store in names)


def is_dropped(run: Run, location: Location, operation: str) -> str | None:
    """How a line throws the result of an operation away: 'statement' (a bare call) or the name of a variable that nobody reads;
    None: it may be read, returned or stored, or the text cannot tell."""
    function = function_around(run, location)
    if function is not None and any(_is_bare_call(node, location.line, operation) for node in ast.walk(function)):
        return "statement"
    statement = None if function is None else statement_at(function, location.line)
    if function is None or statement is None:
        return None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return "statement"
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        return None if _may_be_read(function, statement, name) else name
    return None


def _is_bare_call(node: ast.AST, line: int, operation: str) -> bool:
    """Whether this is a statement on the line (there may be several) that calls the operation and does nothing else."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or node.lineno != line:
        return False
    called = node.value.func
    return operation == (called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else "")


def _may_be_read(function: Function, assignment: ast.Assign, name: str) -> bool:
    """Whether the variable may be read before it is written again: later in the function, or in a loop around the assignment."""
    loops = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.For | ast.While) and node.lineno <= assignment.lineno <= (node.end_lineno or 0)
    ]
    inner = [node for node in ast.walk(function) if isinstance(node, Function | ast.Lambda) and node is not function]
    if any(_reads(part, name) for part in [*loops, *inner]) or any(
        isinstance(node, ast.Nonlocal | ast.Global) and name in node.names for node in ast.walk(function)
    ):
        return True
    end = assignment.end_lineno or assignment.lineno
    later = [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node.lineno > end]
    for statement in sorted(later, key=lambda node: node.lineno):
        if isinstance(statement, ast.Assign) and statement.col_offset == assignment.col_offset:
            if _reads(statement.value, name):
                return True
            if any(isinstance(target, ast.Name) and target.id == name for target in statement.targets):
                return False
        elif _reads(statement, name):
            return True
    return False


def _reads(node: ast.AST, name: str) -> bool:
    """Whether a piece of code reads the variable; `x += …` reads as well as writes."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            return True
        if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and part.target.id == name:
            return True
    return False


def text_of_file(run: Run, location: Location) -> ast.Module | None:
    """The same, parsed."""
    known = text_around(run, location)
    return None if known is None else known.tree
