"""Where the data of a loader or of a call is made, read from the script's text: the line that one would change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trueline.model import Location
from trueline.store import Run
from trueline.views.source import Function, innermost_function, statement_at, text_of_file

# Calls that hand on what they are given: the data is made before them.
HANDED_ON = frozenset(
    {"DataLoader", "TensorDataset", "Subset", "ConcatDataset", "random_split", "iter", "enumerate", "next", "tqdm", "list"}
)
_TO_TENSOR = frozenset({"tensor", "from_numpy", "as_tensor", "FloatTensor", "Tensor", "LongTensor", "float", "stack"})
_SELECTING = frozenset(
    "train_test_split random_split Subset split sample choice take iloc loc filter select delete index_select".split()
)
_MOST_HOPS = 8


def where_made(run: Run, location: Location | None, *, inside: bool = True) -> Location | None:
    """From the line that builds a loader or calls a model to the line that makes its inputs (or, not `inside`, that builds their
    dataset); the given line where the text does not tell, or has changed since the run."""
    # A pipeline's own preparation is the line that one would change.
    if location is None or ".map(" in (location.source or ""):
        return location
    tree = text_of_file(run, location)
    if tree is None:
        return location
    search = _Search(tree, inside=inside)
    return search.place(location, search.origin_of_line(location.line))


def where_selected(run: Run, location: Location | None) -> Location | None:
    """From the line that builds a loader or calls a model to the line that chooses its samples among all: a split, a slice. The
    given line where it does so itself, or the text does not tell."""
    tree = None if location is None else text_of_file(run, location)
    if location is None or tree is None:
        return location
    search = _Search(tree, inside=False)
    return search.place(location, search.selection_of_line(location.line))


class _Search:
    """Follows names through one file."""

    def __init__(self, tree: ast.Module, *, inside: bool) -> None:
        self._tree = tree
        self._inside = inside
        self._classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self._start = 0

    def origin_of_line(self, line: int) -> int | None:
        statement = self.statement(line)
        self._start = line
        if statement is None:
            return None
        expression = _first_data(statement)
        return None if expression is None else self._origin(expression, line, _MOST_HOPS)

    def selection_of_line(self, line: int) -> int | None:
        statement = self.statement(line)
        expression = None if statement is None else _first_data(statement)
        return None if expression is None else self._selection(expression, line, _MOST_HOPS)

    def place(self, location: Location, line: int | None) -> Location:
        """The line in the same file; the given location for none."""
        if line is None or line == location.line:
            return location
        text = ast.unparse(self.statement(line) or self._tree).splitlines()[0]
        return Location(location.file, line, location.module, self.function_name(line), text)

    def statement(self, line: int) -> ast.stmt | None:
        return statement_at(innermost_function(self._tree, line) or self._tree, line)

    def function_name(self, line: int) -> str:
        around = innermost_function(self._tree, line)
        return around.name if around is not None else "<module>"

    def _selection(self, expression: ast.expr, line: int, hops: int) -> int | None:
        """The line on which a part of the data was chosen that became the value of an expression; None for all of it."""
        if hops == 0:
            return None
        if isinstance(expression, ast.Subscript) or (isinstance(expression, ast.Call) and name_of(expression) in _SELECTING):
            return line
        if isinstance(expression, ast.Starred | ast.Attribute):
            return self._selection(expression.value, line, hops - 1)
        if isinstance(expression, ast.Call):
            # A method is called on data, a function is given them.
            first = _first_argument(expression)
            owner = expression.func.value if isinstance(expression.func, ast.Attribute) else None
            found = [self._selection(one, line, hops - 1) for one in (first, owner) if one is not None]
            return next((one for one in found if one is not None), None)
        if not isinstance(expression, ast.Name):
            return None
        last = self._last_assignment(expression.id, line)
        return None if last is None else self._selection(last[1] or last[0].value, last[0].lineno, hops - 1)

    def _last_assignment(self, name: str, line: int) -> tuple[ast.Assign, ast.expr | None] | None:
        """The last assignment of a variable before a line, and the part of its value that the variable gets, if that is told;
        None for parameters and variables of loops."""
        around = innermost_function(self._tree, line)
        for scope in [around, self._tree] if around is not None else [self._tree]:
            if isinstance(scope, Function) and any(argument.arg == name for argument in arguments_of(scope)):
                return None
            own = [
                node
                for node in own_statements(scope)
                if isinstance(node, ast.Assign) and node.lineno < line and _assigns(node, name)
            ]
            if own:
                last = max(own, key=lambda node: node.lineno)
                value: ast.expr | None = last.value
                if isinstance(value, ast.Tuple) and isinstance(last.targets[0], ast.Tuple):
                    value = _matching(last.targets[0], value, name)
                return last, value
            if any(_loops_over(node, name) for node in ast.walk(scope)):
                return None
        return None

    def _origin(self, expression: ast.expr, line: int, hops: int) -> int | None:
        """The line on which the value of an expression is made; None when it cannot be followed."""
        if hops == 0:
            return None
        if isinstance(expression, ast.Subscript | ast.Starred):
            return self._origin(expression.value, line, hops - 1)
        if isinstance(expression, ast.Name):
            return self._of_name(expression.id, line, hops)
        if isinstance(expression, ast.Attribute):
            return self._of_attribute(expression, line)
        if isinstance(expression, ast.Call):
            return self._of_call(expression, line, hops)
        return None

    def _of_name(self, name: str, line: int, hops: int) -> int | None:
        found = self._last_assignment(name, line)
        if found is None:
            return None
        last, value = found
        further = self._origin(value, last.lineno, hops - 1) if value is not None else None
        return last.lineno if further is None else further

    def _of_attribute(self, expression: ast.Attribute, line: int) -> int | None:
        """`self.x`: the last line of the class that assigns it."""
        owner = next((node for node in self._classes.values() if node.lineno <= line <= (node.end_lineno or 0)), None)
        if owner is None or not isinstance(expression.value, ast.Name) or expression.value.id != "self":
            return None
        lines = [
            node.lineno
            for node in ast.walk(owner)
            if isinstance(node, ast.Assign) and any(ast.unparse(target) == ast.unparse(expression) for target in targets_of(node))
        ]
        return max(lines) if lines else None

    def _of_call(self, call: ast.Call, line: int, hops: int) -> int | None:
        name = name_of(call)
        if name in self._classes:
            made = self._line_of_reading(self._classes[name]) if self._inside else None
            first = _first_argument(call)
            if made is None and call.lineno == self._start and isinstance(first, ast.Name | ast.Subscript):
                # A dataset with a line of its own is what one would change; this one is built inside of the loader's.
                made = self._origin(first, line, hops - 1)
            return call.lineno if made is None else made
        if name in HANDED_ON and (first := _first_argument(call)) is not None:
            further = self._origin(first, line, hops - 1)
            return call.lineno if further is None else further
        return call.lineno

    @staticmethod
    def _line_of_reading(owner: ast.ClassDef) -> int | None:
        """The line of `__getitem__` that makes the tensor."""
        read = next((node for node in owner.body if isinstance(node, Function) and node.name == "__getitem__"), None)
        for node in ast.walk(read) if read is not None else ():
            if isinstance(node, ast.stmt) and not isinstance(node, Function | ast.If | ast.For | ast.With):
                calls = {name_of(part) for part in ast.walk(node) if isinstance(part, ast.Call)}
                if calls & _TO_TENSOR:
                    return node.lineno
        return None


def _first_data(statement: ast.stmt) -> ast.expr | None:
    """The dataset of the `DataLoader(…)` in a statement, else what the first call of something that looks like a model takes."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    loaders = [call for call in calls if name_of(call) == "DataLoader"]
    if loaders:
        return _first_argument(loaders[0]) if len(loaders) == 1 else None
    # Outermost first: of `loss(model(x), y)` the innermost call that takes data is the model's.
    for call in reversed(calls):
        first = _first_argument(call)
        if isinstance(call.func, ast.Name | ast.Attribute) and isinstance(first, ast.Name | ast.Attribute | ast.Subscript):
            return first
    return None


def _first_argument(call: ast.Call) -> ast.expr | None:
    if call.args:
        first = call.args[0]
        return first.elts[0] if isinstance(first, ast.List) and first.elts else first
    return next((keyword.value for keyword in call.keywords if keyword.arg in {"dataset", "x", "input", "input_ids"}), None)


def name_of(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def arguments_of(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def targets_of(node: ast.Assign) -> Iterator[ast.expr]:
    for target in node.targets:
        yield from target.elts if isinstance(target, ast.Tuple) else [target]


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in targets_of(node))


def _matching(targets: ast.Tuple, values: ast.Tuple, name: str) -> ast.expr | None:
    if len(targets.elts) != len(values.elts):
        return None
    return next((v for t, v in zip(targets.elts, values.elts, strict=True) if isinstance(t, ast.Name) and t.id == name), None)


def own_statements(scope: ast.AST) -> Iterator[ast.Assign | ast.AugAssign | ast.Expr]:
    """The statements of a function or module that may write a variable, without those of functions and classes inside of it."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
            yield node
        elif not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            yield from own_statements(node)


def _loops_over(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.For) and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.target))
