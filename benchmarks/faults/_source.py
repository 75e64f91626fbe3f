"""Edits of a script's text by its syntax tree that keep lines where they are: the line of a planted fault stays known."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass


class LineMoved(ValueError):
    """An edit would have changed the number of lines."""


@dataclass(frozen=True)
class Edit:
    """Replace the bytes from `start` to `end` of the script."""

    start: int
    end: int
    text: str


class Source:
    """A script with its syntax tree, and the questions that mutations ask of it."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.tree = ast.parse(text)
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: parent for parent in self.nodes for child in ast.iter_child_nodes(parent)}

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where the node starts and ends, in bytes."""
        place = node  # the attributes are there on every expression and statement
        start = self._starts[place.lineno - 1] + place.col_offset  # type: ignore[attr-defined]
        end = self._starts[place.end_lineno - 1] + place.end_col_offset  # type: ignore[attr-defined]
        return start, end

    def text_of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Put `text` in the node's place, with blank lines behind a statement that was longer."""
        missing = self.text_of(node).count("\n") - text.count("\n")
        if missing < 0 or (missing and not isinstance(node, ast.stmt)):
            raise LineMoved(f"Line {node.lineno}: Expected a replacement of the same number of lines. Received {text!r}.")  # type: ignore[attr-defined]
        return Edit(*self.span(node), text + "\n" * missing)

    def wrap(self, node: ast.expr, before: str, after: str) -> list[Edit]:
        """Put text before and after an expression, of however many lines."""
        start, end = self.span(node)
        return [Edit(start, start, before), Edit(end, end, after)]

    def remove(self, statement: ast.stmt) -> Edit:
        return self.replace(statement, "pass")

    def append(self, statement: ast.stmt, text: str) -> Edit:
        """Another statement behind this simple one, on the line where it ends."""
        end = self.span(statement)[1]
        return Edit(end, end, f"; {text}")

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that the node is part of."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What the node lies in, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def calls(self, *names: str) -> list[ast.Call]:
        """The calls of functions or methods whose last name is one of these, in order of appearance."""
        found = [node for node in self.nodes if isinstance(node, ast.Call) and last_name(node.func) in names]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    def loop_of(self, node: ast.AST) -> ast.For | None:
        """The innermost `for` loop around the node."""
        return next((each for each in self.above(node) if isinstance(each, ast.For)), None)

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        return next((each for each in self.above(node) if isinstance(each, ast.FunctionDef)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return next((each for each in self.above(node) if isinstance(each, ast.ClassDef)), None)

    def importing(self, module: str) -> Edit:
        """Import a module on the line of the first import of the script (no `__future__` in the bases)."""
        first = next(node for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom))
        return self.append(first, f"import {module}")

    def indentation_of(self, statement: ast.stmt) -> str:
        return " " * statement.col_offset

    def edited(self, edits: list[Edit], added: int = 0) -> str:
        """The script with the edits made. It compiles, and has as many lines as before, or so many more."""
        data = self.data
        for edit in sorted(edits, key=lambda each: (each.start, each.end), reverse=True):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        more = data.count(b"\n") - self.data.count(b"\n")
        if more != added:
            raise LineMoved(f"Expected edits that add {added} lines. Received edits that add {more}.")
        text = data.decode()
        compile(text, "train.py", "exec")
        return text


def last_name(node: ast.expr) -> str | None:
    """`step` of `self.optimizer.step`, `relu` of `relu`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def dotted(node: ast.expr) -> str:
    """`torch.optim.Adam` as text; empty for what is not a chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (start := dotted(node.value)):
        return f"{start}.{node.attr}"
    return ""


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((each for each in call.keywords if each.arg == name), None)


def assigned(statement: ast.stmt) -> ast.expr | None:
    """The target of a plain assignment of one thing."""
    return statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
