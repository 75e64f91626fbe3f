"""The text that MindSpore's compiler writes of a graph after it has inferred types and shapes, read into plain objects.

At that stage nothing has been optimised away: every function is a graph of its own, calls are calls, and each node has its
types, its scope (the path of cells, where the compiled thing is a cell) and the lines that led to it. One node looks so:

    %2(skip) = call @135_..._LayerNorm_construct_353(%para231_x)
        : (<Tensor[Float32], (8, 16)>) -> (<Tensor[Float32], (8, 16)>)
        # Fullname with scope: (Default/blocks-SequentialCell/1-Block/135_..._353-op0)
        # In file train.py:15, 15~27/        skip = self.norm(x)/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

_GRAPH = re.compile(r"^subgraph @(?P<name>\S+?)(?: parent: \[subgraph @\S+?\])?\((?P<parameters>.*)\) \{$")
_NODE = re.compile(r"^  (?:%(?P<number>\d+)\((?P<name>.*?)\) = |(?P<end>Return))(?P<rest>.*)$", re.DOTALL)
_FILE = re.compile(r"# In file (?P<file>.+?):(?P<line>\d+)(?P<range>~\d+)?(?:, \d+~\d+)?/(?P<text>.*)/\s*$", re.DOTALL)
_DEF = re.compile(r"\s*def (\w+)")
_SCOPE = re.compile(r"# Fullname with scope: \((?P<scope>.*)\)$")
_SCALAR = re.compile(r"^(?:I|U|F|BF)\d+\((?P<number>.*)\)$")
_CONSTANT_TENSOR = re.compile(r"^Tensor\(shape=\[(?P<shape>[\d, ]*)\], dtype=(?P<dtype>\w+)")
_TENSOR_TYPE = re.compile(r"Tensor\[(\w+)\]")
# What the compiler puts in front of the names of branches and loops.
_MARKS = "✓✗↓⇓⇊↵↻↰↱↲↳⤾⥁⟦⟧⥂"
_LABEL = re.compile(rf"^\d+_(?P<marks>(?:\d*[{_MARKS}])*)(?P<label>.*)_\d+$")
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Tensor(msgspec.Struct, frozen=True):
    """What is known of a tensor without its values."""

    shape: tuple[int, ...]
    dtype: str


class Line(msgspec.Struct, frozen=True):
    file: str
    number: int
    text: str
    function: str | None = None


class Node(msgspec.Struct):
    """One call: of a graph (`call @name`), a primitive, or a value that holds a function (`%3`, `$(@graph:node)`).

    `candidates` are the functions that such a value may hold. `kind` is the nest of tuples of tensors that it gives, None for
    what holds no tensor. `line` is the line of its own function, wherever that was called from.
    """

    name: str
    number: str
    callee: str
    arguments: list[str]
    candidates: list[str] = []
    kind: Any = None
    scope: str = ""
    line: Line | None = None


class Graph(msgspec.Struct):
    """A function. `label` is its name in Python, with module and class in front for `construct` of cells; `part` says that it
    is only a branch or loop of the function of that name, or what comes after one."""

    name: str
    label: str
    part: bool
    parameters: list[str]
    file: str = ""
    scope: str = ""
    nodes: list[Node] = msgspec.field(default_factory=list)
    result: str = ""


class Program(msgspec.Struct):
    """All functions of a compiled thing. `inputs` are the parameters of the whole: name and kind; `weights` those that are
    parameters of the network: the name in the text, and the parameter's own."""

    entry: str = ""
    inputs: dict[str, Any] = msgspec.field(default_factory=dict)
    weights: dict[str, str] = msgspec.field(default_factory=dict)
    graphs: dict[str, Graph] = msgspec.field(default_factory=dict)


def read(lines: Iterable[str]) -> Program:
    """Read the text of a program, line by line."""
    program = Program()
    graph: Graph | None = None
    file = ""
    parts: list[str] = []
    for line in lines:
        line = line.rstrip("\n")  # noqa: PLW2901
        if graph is None:
            if line.startswith("# IR entry: @"):
                program.entry = line.removeprefix("# IR entry: @").strip()
            elif line.startswith("%para"):
                _read_input(program, line)
            elif line.startswith("# In file "):
                found = _FILE.match(line)
                file = found["file"] if found else ""
            elif (header := _GRAPH.match(line)) is not None:
                graph = _new_graph(header["name"], header["parameters"], file)
                program.graphs[graph.name] = graph
                file, parts = "", []
        elif line == "}":
            _add_node(graph, parts)
            graph = None
        elif line.startswith(("  %", "  Return(")):
            _add_node(graph, parts)
            parts = [line]
        else:
            parts.append(line)
    return program


def _read_input(program: Program, line: str) -> None:
    name, _, told = line.partition(": <")
    program.inputs[name[1:]] = kind_of("<" + told.rpartition(">")[0] + ">")
    key = re.search(r"ref_key=([^,>]+)", told)
    if key is not None:
        program.weights[name[1:]] = key[1].lstrip(":")


def _new_graph(name: str, parameters: str, file: str) -> Graph:
    found = _LABEL.match(name)
    label, marks = (found["label"], found["marks"]) if found else (name, "")
    return Graph(name, label, bool(marks), [part.strip().lstrip("%") for part in split(parameters)], file)


def _add_node(graph: Graph, parts: list[str]) -> None:
    if not parts:
        return
    told = [part for part in parts if not part.startswith("      ")]
    found = _NODE.match("\n".join(told))
    if found is None:
        return
    callee, arguments = _call_of(found["rest"])
    notes = [part.strip() for part in parts if part.startswith("      ")]
    kinds = next((note for note in notes if note.startswith(": (")), "")
    scope = next((place["scope"].rpartition("/")[0] for note in notes if (place := _SCOPE.match(note)) is not None), "")
    if found["end"]:
        graph.result = next(iter(split(arguments)), "").strip()
        graph.scope = scope
        return
    callee, _, told_of = callee.partition("[@")
    candidates = told_of if told_of.startswith("@") else ""
    node = Node(found["name"], found["number"], callee, [part.strip() for part in split(arguments)])
    node.candidates = [part.strip().lstrip("@") for part in candidates.rstrip("]").split(",") if part.strip()]
    node.kind = kind_of(kinds.rpartition(") -> (")[2][:-1])
    node.scope = scope
    node.line = _own_line(notes)
    graph.nodes.append(node)


def _own_line(notes: list[str]) -> Line | None:
    """The innermost of the lines that led to a node that is not that of a function as a whole."""
    own: Line | None = None
    for note in reversed(notes):
        found = _FILE.match(note)
        if found is None:
            continue
        is_function = bool(found["range"]) and found["text"].lstrip().startswith(("def ", "@", "class "))
        if own is None and not is_function:
            own = Line(found["file"], int(found["line"]), found["text"])
        elif own is not None:
            header = _DEF.match(found["text"]) if is_function and found["file"] == own.file else None
            return own if header is None else msgspec.structs.replace(own, function=header[1])
    return own


def _call_of(text: str) -> tuple[str, str]:
    """The called thing, and the text of its arguments."""
    start = _closing(text, 1) + 1 if text.startswith("$(") else min(_place_of(text, "("), _place_of(text, "["))
    if text[start : start + 1] == "[":
        # `%1[@@a, @@b](…)`: what the value may hold.
        start = _closing(text, start) + 1
    callee = text[:start].strip()
    if start >= len(text) or text[start] != "(":
        return callee, ""
    return callee.removeprefix("call ").strip(), text[start + 1 : _closing(text, start)]


def _place_of(text: str, letter: str) -> int:
    place = text.find(letter)
    return len(text) if place < 0 else place


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed."""
    depth, quoted = 0, False
    for place in range(start, len(text)):
        letter = text[place]
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 0:
                return place
    return len(text)


def split(text: str, *, angles: bool = False) -> list[str]:
    """The parts of a list, at the commas that are outside of all brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    opening, closing = ("([{<", ")]}>") if angles else ("([{", ")]}")
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in opening:
            depth += 1
        elif letter in closing:
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    last = text[start:]
    return [*parts, last] if last.strip() else parts


def kind_of(text: str) -> Any:
    """`<Tensor[Float32], (8, 16)>` → a Tensor; a tuple → a tuple of such; None for what has no shape."""
    text = text.strip()
    if not (text.startswith("<") and text.endswith(">")):
        return None
    parts = split(text[1:-1], angles=True)
    if len(parts) < 2:
        return None
    return _kind(parts[0].strip(), parts[1].strip())


def _kind(type_text: str, shape_text: str) -> Any:
    for sequence in ("Tuple", "List"):
        if type_text.startswith(f"{sequence}[") and shape_text.startswith((f"{sequence}Shape(", "TupleShape(", "ListShape(")):
            types = list(_repeated(split(type_text[len(sequence) + 1 : -1], angles=True)))
            shapes = split(shape_text[shape_text.index("(") + 1 : -1], angles=True)
            if len(types) != len(shapes):
                return None
            return tuple(_kind(one.strip(), shape.strip()) for one, shape in zip(types, shapes, strict=True))
    found = _TENSOR_TYPE.search(type_text)
    if found is None or not shape_text.startswith("("):
        return None
    try:
        shape = tuple(int(size) for size in shape_text[1:-1].split(",") if size.strip())
    except ValueError:
        shape = (-1,)
    return Tensor(shape, found[1].lower())


def _repeated(types: list[str]) -> Iterator[str]:
    """`Tensor[Float32]*2` stands for two of them."""
    for one in types:
        name, star, count = one.rpartition("*")
        if star and count.strip().isdigit():
            yield from [name] * int(count)
        else:
            yield one


def constant_tensor(text: str) -> Tensor | None:
    """What a tensor is that is written into the program; None for any other constant."""
    found = _CONSTANT_TENSOR.match(text)
    if found is None:
        return None
    return Tensor(tuple(int(size) for size in found["shape"].split(",") if size.strip()), found["dtype"].lower())


def constant_of(text: str) -> Any:
    """The value of a constant: a number, truth value, text, None or tuple of such. What else there is (types, arrays) as text."""
    if text in ("None", "Bool(0)", "Bool(1)"):
        return None if text == "None" else text == "Bool(1)"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    scalar = _SCALAR.match(text)
    number = scalar["number"] if scalar else text
    for convert in (int, float):
        try:
            return convert(number)
        except ValueError:
            continue
    if text[:1] in ("(", "[") and text.endswith(_PAIRS[text[0]]):
        return tuple(constant_of(part.strip()) for part in split(text[1:-1]))
    if text.startswith("KeywordArg[") and ", value : " in text:
        return constant_of(text.partition(", value : ")[2][:-1])
    return Opaque(text)


class Opaque(msgspec.Struct, frozen=True):
    """A constant that is not understood."""

    text: str
