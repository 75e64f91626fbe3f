"""Where the labels of a loader or of a loss are written, read from the script's text: `labels[rows] = …` and the like."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueline.model import Location
from trueline.store import Run
from trueline.views.data_origin import HANDED_ON, arguments_of, name_of, own_statements, targets_of
from trueline.views.source import Function, innermost_function, statement_at, text_of_file

# Calls that make other values of the labels that they are given, and those that write into them.
_ALTERING = frozenset(
    {"where", "roll", "permutation", "permuted", "choice", "flip", "clip", "sort", "sorted", "argsort", "digitize"}
)
_IN_PLACE = frozenset({"shuffle", "sort", "reverse", "put", "put_", "fill_", "place", "putmask", "copyto", "index_fill_"})
_LABEL_NAMES = ("label", "target", "y", "class")
_MOST_HOPS = 16

Write = ast.Assign | ast.AugAssign | ast.Expr


def where_labelled(run: Run, location: Location | None) -> Location | None:
    """From the line that builds a loader or calls a model to the line that last changes the labels; the given line where the
    text shows no such change, or is another than that of the run."""
    tree = None if location is None else text_of_file(run, location)
    if location is None or tree is None:
        return location
    line = LabelSearch(tree).line_of_change(location.line)
    if line is None or line == location.line:
        return location
    scope = innermost_function(tree, line)
    statement = statement_at(scope or tree, line)
    text = ast.unparse(statement).splitlines()[0] if statement is not None else ""
    return Location(location.file, line, None, scope.name if scope is not None else "<module>", text)


class LabelSearch:
    """Follows the labels backwards through one file."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self._functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
        self._followed: set[tuple[str, int]] = set()

    def line_of_change(self, line: int) -> int | None:
        scope = innermost_function(self._tree, line) or self._tree
        statement = statement_at(scope, line)
        if statement is None:
            return None
        loaders = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and name_of(node) == "DataLoader"]
        if loaders:
            return self._of_dataset(loaders[0], line, _MOST_HOPS) if len(loaders) == 1 else None
        labels = _label_of_loss(scope, line)
        return None if labels is None else self._change(labels, line, _MOST_HOPS)

    def _of_dataset(self, expression: ast.expr | None, line: int, hops: int) -> int | None:
        """The change of the labels that a dataset holds."""
        if hops == 0 or expression is None:
            return None
        if isinstance(expression, ast.Name):
            found = self._last_write(expression.id, line)
            if found is None or isinstance(found[1], ast.AugAssign | ast.Expr):
                return None
            scope, last = found
            if last is None:
                return self._of_parameter(scope, expression.id, hops, dataset=True)
            return self._of_dataset(last.value, last.lineno, hops - 1)
        if not isinstance(expression, ast.Call):
            return None
        name = name_of(expression)
        if name == "TensorDataset":
            return self._change(expression.args[-1], line, hops - 1) if len(expression.args) > 1 else None
        if name in self._functions:
            return self._of_function(name, None, hops, dataset=True)
        if name in HANDED_ON and (expression.args or expression.keywords):
            first = expression.args[0] if expression.args else expression.keywords[0].value
            return self._of_dataset(first, line, hops - 1)
        owner = self._classes.get(name)
        inside = self._in_class(owner) if owner is not None else None
        given = self._of_constructor(expression, hops) if inside is None else inside
        return self._made_in_class(owner) if given is None and owner is not None else given

    def _of_constructor(self, call: ast.Call, hops: int) -> int | None:
        """The labels among what a dataset is made from: by their name, or the last of several."""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        named = [one for one in given if any(_is_label_name(name) for name in _names_in(one))]
        chosen = named or (given[-1:] if len(call.args) > 1 else [])
        changes = [self._change(one, call.lineno, hops - 1) for one in chosen]
        return next((change for change in changes if change is not None), None)

    def _in_class(self, owner: ast.ClassDef) -> int | None:
        """The last line of a dataset's class that writes into labels of its own."""
        lines = [
            node.lineno
            for node in ast.walk(owner)
            if isinstance(node, Write) and any(_is_label_name(name) for name in _written_into(node))
        ]
        return max(lines, default=None)

    @staticmethod
    def _made_in_class(owner: ast.ClassDef) -> int | None:
        """The first line of a dataset's class that makes labels of something else, `self.labels = [… for …]`."""
        lines = [
            node.lineno
            for node in ast.walk(owner)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Attribute) and _is_label_name(target.attr) for target in targets_of(node))
            and any(isinstance(part, ast.Call | ast.ListComp) for part in ast.walk(node.value))
        ]
        return min(lines, default=None)

    def _change(self, expression: ast.expr, line: int, hops: int) -> int | None:
        """The line that last changes the value of an expression, before the given line."""
        if hops == 0:
            return None
        if isinstance(expression, ast.BinOp | ast.Compare | ast.IfExp):
            return line
        if isinstance(expression, ast.Subscript | ast.Starred):
            return self._change(expression.value, line, hops - 1)
        if isinstance(expression, ast.Name):
            return self._of_name(expression.id, line, hops)
        if isinstance(expression, ast.Attribute):
            owner = next((node for node in self._classes.values() if node.lineno <= line <= (node.end_lineno or 0)), None)
            return self._in_class(owner) if owner is not None else None
        if isinstance(expression, ast.Call):
            return self._of_call(expression, line, hops)
        return None

    def _of_call(self, call: ast.Call, line: int, hops: int) -> int | None:
        name = name_of(call)
        if name in _ALTERING:
            return line
        if name in self._functions:
            return self._of_function(name, None, hops)
        if isinstance(call.func, ast.Attribute) and not call.args:
            return self._change(call.func.value, line, hops - 1)
        return self._change(call.args[0], line, hops - 1) if call.args else None

    def _of_name(self, name: str, line: int, hops: int) -> int | None:
        if (name, line) in self._followed:
            return None
        self._followed.add((name, line))
        found = self._last_write(name, line)
        if found is None:
            return None
        scope, last = found
        if last is None:
            return self._of_parameter(scope, name, hops)
        if not isinstance(last, ast.Assign) or name in _written_into(last):
            return last.lineno
        return self._of_assignment(last, name, hops)

    def _of_assignment(self, last: ast.Assign, name: str, hops: int) -> int | None:
        target = last.targets[0]
        if not isinstance(target, ast.Tuple):
            return self._change(last.value, last.lineno, hops - 1)
        place = next((i for i, one in enumerate(target.elts) if isinstance(one, ast.Name) and one.id == name), None)
        if place is None:
            return None
        value = last.value
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            return self._change(value.elts[place], last.lineno, hops - 1)
        if isinstance(value, ast.Call):
            called = name_of(value)
            if called == "train_test_split" and place // 2 < len(value.args):
                return self._change(value.args[place // 2], last.lineno, hops - 1)
            return self._of_function(called, place, hops)
        return None

    def _of_function(self, name: str, place: int | None, hops: int, *, dataset: bool = False) -> int | None:
        """What a function of the script returns, at a place of the tuple that it returns."""
        function = self._functions.get(name)
        returned = [node for node in ast.walk(function) if isinstance(node, ast.Return)] if function is not None else []
        if not returned or returned[-1].value is None:
            return None
        value = returned[-1].value
        if place is not None:
            if not isinstance(value, ast.Tuple) or place >= len(value.elts):
                return None
            value = value.elts[place]
        line = returned[-1].lineno
        return self._of_dataset(value, line, hops - 1) if dataset else self._change(value, line, hops - 1)

    def _of_parameter(self, scope: ast.AST, name: str, hops: int, *, dataset: bool = False) -> int | None:
        """What the one call of a function hands in."""
        if not isinstance(scope, Function):
            return None
        names = [argument.arg for argument in arguments_of(scope)]
        calls = [node for node in ast.walk(self._tree) if isinstance(node, ast.Call) and name_of(node) == scope.name]
        if len(calls) != 1 or name not in names:
            return None
        by_name = {keyword.arg: keyword.value for keyword in calls[0].keywords}
        place = names.index(name)
        value = by_name.get(name, calls[0].args[place] if place < len(calls[0].args) else None)
        if value is None:
            return None
        line = calls[0].lineno
        return self._of_dataset(value, line, hops - 1) if dataset else self._change(value, line, hops - 1)

    def _last_write(self, name: str, line: int) -> tuple[ast.AST, Write | None] | None:
        """The last statement before a line that writes a variable or into it, in the function around the line or in the file,
        with that scope; for a parameter the function alone."""
        around = innermost_function(self._tree, line)
        for scope in [around, self._tree] if around is not None else [self._tree]:
            writes = [node for node in own_statements(scope) if node.lineno < line and _writes(node, name)]
            if writes:
                return scope, max(writes, key=lambda node: node.lineno)
            if isinstance(scope, Function) and any(argument.arg == name for argument in arguments_of(scope)):
                return scope, None
        return None


def _writes(node: Write, name: str) -> bool:
    bound = isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in targets_of(node))
    return bound or name in _written_into(node)


def _written_into(node: Write) -> set[str]:
    """The names of what a statement changes in place: `y[i] = …`, `y += …`, `self.y[i] = …`, `shuffle(y)`, `y.sort()`."""
    changed: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        changed = [target.value for target in targets_of(node) if isinstance(target, ast.Subscript)]
    elif isinstance(node, ast.AugAssign):
        changed = [node.target.value if isinstance(node.target, ast.Subscript) else node.target]
    elif isinstance(node.value, ast.Call) and name_of(node.value) in _IN_PLACE:
        call = node.value
        changed = [call.args[0]] if call.args else []
        if isinstance(call.func, ast.Attribute) and not (isinstance(call.func.value, ast.Name) and changed):
            changed.append(call.func.value)
    return {name for one in changed for name in _name_of_variable(one)}


def _name_of_variable(expression: ast.expr) -> list[str]:
    if isinstance(expression, ast.Subscript):
        return _name_of_variable(expression.value)
    if isinstance(expression, ast.Attribute):
        return [expression.attr]
    return [expression.id] if isinstance(expression, ast.Name) else []


def _names_in(expression: ast.expr) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _is_label_name(name: str) -> bool:
    words = name.lower().strip("_").split("_")
    return any(word.startswith(_LABEL_NAMES[:2]) or word in _LABEL_NAMES or word == "ys" for word in words)


def _label_of_loss(scope: ast.AST, line: int) -> ast.expr | None:
    """The second thing that a call takes whose first is what the line's statement makes, or the call on the line itself."""
    statement = statement_at(scope, line) if isinstance(scope, Function | ast.Module) else None
    targets = targets_of(statement) if isinstance(statement, ast.Assign) else ()
    made = {target.id for target in targets if isinstance(target, ast.Name)}
    for node in ast.walk(scope):
        if not isinstance(node, ast.Call) or len(node.args) < 2 or node.lineno < line:
            continue
        first = node.args[0]
        on_line = node.lineno == line and isinstance(first, ast.Call)
        takes = any(isinstance(part, ast.Name) and part.id in made for part in ast.walk(first))
        if on_line or takes:
            return node.args[1]
    return None
