"""Following a compiled program as it would run, with types in the place of values: which operation takes what from where.

Functions are entered where they are called. Only what is differentiated is told to the listener: the forward pass and the
loss, not the optimizer and not the derivatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from trueline.adapters.mindspore.compiled import ir, taps

# The same function inside of itself: a loop whose length only the values decide. Walked so often.
_MOST_NESTED = 2
_MOST_NODES = 400_000
_SEQUENCES = {"MakeTuple", "MakeList", "make_tuple", "make_list"}
_ITEMS = {"TupleGetItem", "ListGetItem", "tuple_getitem", "list_getitem"}
# Operators that hand on their first argument: for the order of things only, or a list as a tuple.
_HANDS_ON = {"Depend", "Load", "mutable", "identity", "ListToTuple", "TupleToList", "list_to_tuple", "tuple_to_list"}
# What the compiler puts around a differentiated function that gives more than its loss.
_AROUND = "_anonymous_"
_FREE = re.compile(r"^\$\(@(?P<graph>\S+?):(?P<name>.*)\)$", re.DOTALL)


class Value:
    """A tensor that a compiled program computes or is given. `weight`: the number of the parameter that it is."""

    __slots__ = ("dtype", "shape", "sources", "trained", "weight")

    def __init__(self, kind: ir.Tensor, *, weight: int | None = None, trained: bool = False) -> None:
        self.shape = kind.shape
        self.dtype = kind.dtype
        self.weight = weight
        self.trained = trained
        self.sources: list[Value] = []


class Listener(Protocol):
    """Told of what is differentiated."""

    def operation(self, name: str, arguments: list[Any], outputs: list[Value], place: Place) -> None: ...

    def function(self, graph: ir.Graph, arguments: list[Any], outputs: list[Value], place: Place) -> bool:
        """A function is called: whether it counts as one operation, so that it is not entered."""

    def enter(self, graph: ir.Graph, place: Place) -> Any:
        """A function is entered; gives the cell that it belongs to."""


class Place(msgspec.Struct):
    """Where a node stands: the line of the user's code nearest to it, the cell of its function, and its scope."""

    line: ir.Line | None
    cell: Any
    scope: str


class _Function(msgspec.Struct, eq=False):
    graph: str
    frame: _Frame


class _Partial(msgspec.Struct, eq=False):
    function: Any
    arguments: list[Any]


class _Derivative(msgspec.Struct, eq=False):
    """A function made to give its derivatives too."""

    function: Any


class _Either(msgspec.Struct, eq=False):
    functions: list[Any]


class _Backward:
    """What a differentiated function gives beside its result: called for the derivatives."""


_CALLABLE = (_Function, _Partial, _Derivative, _Either, _Backward)


class _Frame:
    """One call of a function: its values so far, and the call around the place where it was written."""

    __slots__ = ("cell", "graph", "isolated", "line", "outer", "values")

    def __init__(self, graph: ir.Graph, outer: _Frame | None, line: ir.Line | None, cell: Any) -> None:
        self.graph = graph
        self.outer = outer
        self.line = line
        self.cell = cell
        self.values: dict[str, Any] = {}
        self.isolated = _isolated(graph)


def _isolated(graph: ir.Graph) -> set[str]:
    """The `StopGradient` nodes that only keep results alive that nobody takes: the compiler's, not the script's."""
    kept = {node.arguments[1] for node in graph.nodes if node.callee == "Depend" and len(node.arguments) == 2}
    taken = [part for node in graph.nodes for part in (node.arguments[:1] if node.callee == "Depend" else node.arguments)]
    taken.append(graph.result)
    return {
        node.number
        for node in graph.nodes
        if node.callee == "StopGradient" and f"%{node.number}" in kept and f"%{node.number}" not in taken
    }


class Walk:
    """One walk over a program. `complete` is False where something was met that is not understood."""

    def __init__(self, program: ir.Program, inputs: dict[str, Any], listener: Listener, is_user: Callable[[str], bool]) -> None:
        """`inputs`: the values of the program's parameters by their names in its text; `is_user`: whether a file is the user's"""
        self._program = program
        self._is_user = is_user
        self._inputs = inputs
        self._listener = listener
        self._frames: dict[str, _Frame] = {}
        self._nested: dict[str, int] = {}
        self._telling = False
        self._nodes = 0
        self.complete = True
        # What was differentiated: the first tensor that each gives.
        self.roots: list[Value] = []
        self._differentiated: set[tuple[Any, ...]] = set()

    def run(self) -> None:
        entry = self._program.graphs.get(self._program.entry)
        if entry is None:
            self.complete = False
            return
        frame = _Frame(entry, None, None, None)
        frame.values.update(self._inputs)
        self._run_frame(frame)

    def _run_frame(self, frame: _Frame) -> Any:
        graph = frame.graph
        self._frames[graph.name] = frame
        for node in graph.nodes:
            value = self._node(node, frame)
            frame.values[node.number] = value
            frame.values[node.name] = value
        return self._value(graph.result, frame)

    # Values

    def _value(self, text: str, frame: _Frame) -> Any:
        if text.startswith("%"):
            return frame.values.get(text[1:])
        if text.startswith("@"):
            return _Function(text[1:], frame)
        free = _FREE.match(text)
        if free is not None:
            return self._free(free["graph"], free["name"], frame)
        kind = ir.constant_tensor(text)
        return ir.constant_of(text) if kind is None else Value(kind)

    def _free(self, graph: str, name: str, frame: _Frame) -> Any:
        around: _Frame | None = frame
        while around is not None and around.graph.name != graph:
            around = around.outer
        around = around or self._frames.get(graph)
        if around is None or name not in around.values:
            self._lost()
            return None
        return around.values[name]

    def _lost(self) -> None:
        if self._telling:
            self.complete = False

    # Nodes

    def _node(self, node: ir.Node, frame: _Frame) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            self.complete = False
            return _values_of(node.kind)
        arguments = [self._value(text, frame) for text in node.arguments]
        if node.callee[:1] in "@%$" or node.candidates:
            return self._apply(self._called(node, frame), arguments, node, frame)
        return self._primitive(node.callee.removeprefix("PrimFunc_"), arguments, node, frame)

    def _called(self, node: ir.Node, frame: _Frame) -> Any:
        # Parameters that hold functions are called by their short names.
        function = self._value(node.callee, frame) if node.callee[:1] in "@%$" else frame.values.get(node.callee)
        if len(node.candidates) == 1 and not isinstance(function, _CALLABLE):
            return _Function(node.candidates[0], frame)
        return function

    def _place(self, node: ir.Node, frame: _Frame) -> Place:
        line = node.line or self._line_beside(node, frame.graph)
        return Place(line if line is not None and self._is_user(line.file) else frame.line, frame.cell, node.scope)

    def _line_beside(self, node: ir.Node, graph: ir.Graph) -> ir.Line | None:
        """A call with keywords has no line of its own; the tuple of its arguments has, and what takes its result."""
        lines = {f"%{other.number}": other.line for other in graph.nodes if other.line is not None}
        before = [lines[text] for text in reversed(node.arguments) if text in lines]
        after = [other.line for other in graph.nodes if other.line is not None and f"%{node.number}" in other.arguments]
        return next(iter(before + after), None)

    def _apply(self, function: Any, arguments: list[Any], node: ir.Node, frame: _Frame) -> Any:
        if isinstance(function, _Function):
            return self._call(function, arguments, node, frame)
        if isinstance(function, _Partial):
            return self._apply(function.function, [*function.arguments, *arguments], node, frame)
        if isinstance(function, _Either):
            results = [self._apply(one, arguments, node, frame) for one in function.functions]
            return _joined(results, node.kind)
        if isinstance(function, _Derivative):
            return (self._differentiate(function.function, arguments, node, frame), _Backward())
        self._lost()
        return _values_of(node.kind)

    def _call(self, function: _Function, arguments: list[Any], node: ir.Node, frame: _Frame) -> Any:
        graph = self._program.graphs.get(function.graph)
        if graph is None or self._nested.get(function.graph, 0) >= _MOST_NESTED:
            self._lost()
            return _values_of(node.kind)
        if graph.file == taps.__file__ and arguments:
            # Taps hand on what they are given last. They are not the script's.
            return arguments[-1]
        place = self._place(node, frame)
        if self._telling and not graph.part:
            outputs = _values_of(node.kind)
            if self._listener.function(graph, arguments, tensors_in(outputs), place):
                return outputs
        cell, line = frame.cell, place.line
        if graph.part:
            line = frame.line
        elif self._telling:
            cell = self._listener.enter(graph, place) or cell
        called = _Frame(graph, function.frame, line, cell)
        for name, value in zip(graph.parameters, arguments, strict=False):
            called.values[name] = called.values[name.partition("_")[2]] = value
        self._nested[graph.name] = self._nested.get(graph.name, 0) + 1
        try:
            return self._run_frame(called)
        finally:
            self._nested[graph.name] -= 1

    def _differentiate(self, function: Any, arguments: list[Any], node: ir.Node, frame: _Frame) -> Any:
        if self._telling:
            # A derivative inside of what is differentiated: what it gives is not followed.
            self.complete = False
            return self._apply(function, arguments, node, frame)
        name = getattr(function, "graph", None)
        key = (name, *map(id, tensors_in(arguments)))
        if key in self._differentiated:
            return _values_of(node.kind[0] if isinstance(node.kind, tuple) and node.kind else None)
        self._differentiated.add(key)
        self._telling = True
        try:
            result = self._apply(function, arguments, node, frame)
        finally:
            self._telling = False
        self.roots += tensors_in(result)[:1]
        return result

    def _primitive(self, name: str, arguments: list[Any], node: ir.Node, frame: _Frame) -> Any:
        first = arguments[0] if arguments else None
        if name in _SEQUENCES:
            return tuple(arguments)
        if name in _ITEMS and isinstance(first, tuple) and isinstance(arguments[1], int):
            return first[arguments[1]] if -len(first) <= arguments[1] < len(first) else None
        if name in _HANDS_ON:
            return first
        if name == "StopGradient" and node.number in frame.isolated:
            return None
        if name == "StopGradient" and frame.graph.label == _AROUND:
            return first
        if name == "Switch":
            return _branch(arguments)
        if name == "J":
            return _Derivative(first)
        if name == "Partial":
            return _Partial(first, arguments[1:])
        outputs = _values_of(node.kind)
        if self._telling:
            if any(isinstance(value, _CALLABLE) for value in arguments):
                self.complete = False
            if made := tensors_in(outputs):
                self._listener.operation(name, arguments, made, self._place(node, frame))
        return outputs


def _branch(arguments: list[Any]) -> Any:
    condition, branches = arguments[0], [one for one in arguments[1:] if not isinstance(one, ir.Opaque)]
    if len(branches) == 1:
        return branches[0]
    if isinstance(condition, bool):
        return branches[0 if condition else 1]
    return _Either(branches)


def _joined(results: list[Any], kind: Any) -> Any:
    """What one of several branches gives: it may come from any of them."""
    tensors = [tensors_in(result) for result in results]
    outputs = _values_of(kind)
    made = tensors_in(outputs)
    if not tensors or any(len(one) != len(made) for one in tensors):
        return results[0] if results else outputs
    if all(one is other for one, other in zip(tensors[0], tensors[-1], strict=True)):
        return results[0]
    # The trace has one source for a tensor: the branch that training goes through, if one of them does.
    return next((result for result, one in zip(results, tensors, strict=True) if any(part.trained for part in one)), results[0])


def _values_of(kind: Any) -> Any:
    if isinstance(kind, tuple):
        return tuple(map(_values_of, kind))
    return Value(kind) if isinstance(kind, ir.Tensor) else None


def tensors_in(value: Any) -> list[Value]:
    """The tensors in a nest of tuples, in order."""
    if isinstance(value, Value):
        return [value]
    return [tensor for part in value for tensor in tensors_in(part)] if isinstance(value, tuple | list) else []
