"""The operations of compiled training steps, as the compiler tells of them: the rows that a trace of running ones would give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mindspore import Parameter, nn

from trueline.adapters.mindspore.collectives import OPERATORS
from trueline.adapters.mindspore.compiled import ir
from trueline.adapters.mindspore.compiled.cells import Cells
from trueline.adapters.mindspore.compiled.ir_walk import Place, Value, Walk, tensors_in
from trueline.adapters.mindspore.kinds import settings_of as settings_of_cell
from trueline.adapters.mindspore.losses import FUNCTIONS, LOSS_CELLS
from trueline.adapters.mindspore.names import neutral_name, settings_of
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.shared.trace import Trace
from trueline.recorder import Recorder, to_json

_SILENT = {"UpdateState", "DType", "Shape", "Rank", "TensorShape", "TensorToScalar", "ScalarToTensor"}
_ASSIGNING = {"Assign", "AssignAdd", "AssignSub"}
_CUTTING = {"detach"}
_LINEAR = {"matmul", "linear", "conv2d", "conv3d"}
_WITHOUT_DERIVATIVE = ("int", "uint", "bool")
# Where what goes into a loss can be judged from its operations alone, without values.
_JUDGED_BY_GRAPH = {"cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"}
# Positions in the rows of the table `op`.
_NAME, _MODULE, _LOCATION = 2, 3, 4


class CompiledTrace(Trace):
    """Turns one compiled program into the operations and loss calls of the step that is running."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder, registry, lambda value: str(value.dtype))
        self._registry: Registry = registry
        self._cells: Cells | None = None
        self._losses: list[str] = []
        self._here: int | None = None
        # Of the last program: where the loss came from, which parameters a gradient can reach, and the modules that are called.
        self.root: Value | None = None
        self.root_origin: str | None = None
        self.reached: set[int] = set()
        self.called: set[int] = set()
        self.complete = False
        # Operators in the script's own functions by which ranks exchange something.
        self.collectives: list[tuple[str, int | None]] = []

    @property
    def losses_judged(self) -> bool:
        """Whether all losses of the program are of kinds whose inputs are judged by the operations behind them."""
        return set(self._losses) <= _JUDGED_BY_GRAPH

    @property
    def loss_calls(self) -> int:
        return len(self._losses)

    def read(self, lines: Iterable[str], batch: int | None, root: nn.Cell | None, cells: list[nn.Cell]) -> bool:
        """Record the operations of a program whose inputs are a batch. False for one that differentiates nothing."""
        program = ir.read(lines)
        self._cells = Cells(program, root, cells)
        self._losses = []
        self.called = set()
        self._here = self.recorder.location()
        self.collectives = list(self._collectives_of(program))
        # Models that are not part of this program may have parameters of the same names.
        owned = {id(parameter) for cell in (root, *cells) if cell is not None for parameter in cell.get_parameters()}
        known = sorted(self._registry.parameters(), key=lambda pair: id(pair[1]) in owned)
        parameters = {parameter.name: (number, parameter) for number, parameter in known}
        inputs: dict[str, Any] = {}
        for name, kind in program.inputs.items():
            weight = program.weights.get(name)
            inputs[name] = _given(kind) if weight is None else _weight(kind, parameters.get(weight))
        self.feed([(batch, value) for name in inputs if name not in program.weights for value in tensors_in(inputs[name])])
        walk = Walk(program, inputs, self, self.recorder.call_sites.is_user_file)
        walk.run()
        if not walk.roots:
            self.write()
            return False
        self.root = walk.roots[0]
        self.root_origin = self.origin(self.root)
        self.complete = walk.complete and not self.is_full
        self.reached = {number for root in walk.roots for number in _reached(root)}
        self.write()
        return True

    def key_of(self, tensor: Any) -> Any:
        return id(tensor)

    def parameter_of(self, tensor: Any) -> int | None:
        return tensor.weight if isinstance(tensor, Value) else None

    # What the walk tells

    def enter(self, graph: ir.Graph, place: Place) -> nn.Cell | None:
        cell = self._cells.of_function(graph, place.cell, place.line) if self._cells is not None else None
        number = None if cell is None else self._registry.module_id(cell)
        if number is not None:
            self.called.add(number)
            self._registry.mark_called_at(number, self._location(place))
        return cell

    def operation(self, name: str, arguments: list[Any], outputs: list[Value], place: Place) -> None:
        if self.is_full or name in _SILENT or name in _ASSIGNING:
            return
        taken = tensors_in(arguments)
        if name == "BiasAdd" and self._is_folded(taken, outputs):
            return
        settings = settings_of(name, arguments)
        by_weight = len(taken) > 1 and taken[1].weight is not None
        linear = name == "MatMul" and by_weight and settings.get("args") == [False, True]
        self._add("linear" if linear else neutral_name(name), taken, outputs, settings, place)

    def function(self, graph: ir.Graph, arguments: list[Any], outputs: list[Value], place: Place) -> bool:
        """Losses of the framework count as one operation, whatever they are made of."""
        if self.recorder.call_sites.is_user_file(graph.file) or self._cells is None:
            return False
        settings: dict[str, Any]
        if graph.label in FUNCTIONS:
            kind = graph.label
            names = [name.partition("_")[2] for name in graph.parameters]
            settings = {
                name: value for name, value in zip(names, arguments, strict=False) if isinstance(value, bool | int | float | str)
            }
            settings.setdefault("reduction", "mean")
        else:
            kind = LOSS_CELLS.get(graph.label.removesuffix("_construct").rpartition("_")[2], "")
            if not kind or not graph.label.startswith("mindspore_") or not graph.label.endswith("_construct"):
                return False
            cell = self._cells.of_function(graph, place.cell, place.line)
            settings = {} if cell is None else settings_of_cell(cell)
            settings["reduction"] = _reduction(cell, settings)
            number = None if cell is None else self._registry.module_id(cell)
            if number is not None:
                self._registry.mark_called_at(number, self._location(place))
        self._loss(kind, tensors_in(arguments), outputs, settings, place)
        return True

    def _loss(self, kind: str, taken: list[Value], outputs: list[Value], settings: dict[str, Any], place: Place) -> None:
        given, target = [*taken, None, None][:2]
        self._losses.append(kind)
        recorder = self.recorder
        recorder.row(
            "loss_call",
            (
                recorder.next_seq(), recorder.step, kind, self._location(place), 1, None, to_json(self._described(given)),
                to_json(self._described(target)), to_json(settings),
            ),
        )  # fmt: skip
        self._add(kind, taken[:2], outputs, {"reduction": settings.get("reduction")}, place)

    def _described(self, value: Value | None) -> dict[str, Any]:
        if value is None:
            return {}
        return {
            "shape": list(value.shape), "dtype": value.dtype, "requires_grad": value.trained, "op": self.origin(value)
        }  # fmt: skip

    def _is_folded(self, taken: list[Value], outputs: list[Value]) -> bool:
        """Let the bias be part of the layer that it belongs to, as the script has it."""
        origin = self.origin(taken[0])
        row = self._rows.get(origin)
        if row is None or row[_NAME] not in _LINEAR:
            return False
        self.extend(origin, taken[1:], outputs)
        if row[_NAME] == "matmul":
            row[_NAME] = "linear"
        self._follow(taken, outputs)
        return True

    def _add(self, name: str, taken: list[Value], outputs: list[Value], settings: dict[str, Any], place: Place) -> None:
        if name not in _CUTTING:
            self._follow(taken, outputs)
        self.note(name, taken, outputs, settings, lambda value: bool(value.trained))
        row = next(reversed(self._rows.values()))
        row[_LOCATION] = self._location(place)
        row[_MODULE] = self._module_of(place)

    def _follow(self, taken: list[Value], outputs: list[Value]) -> None:
        trained = [value for value in taken if value.trained]
        for output in outputs:
            if trained and not output.dtype.startswith(_WITHOUT_DERIVATIVE):
                output.trained = True
                output.sources = trained

    def _module_of(self, place: Place) -> int | None:
        cell = self._cells.at_scope(place.scope) if self._cells is not None and place.scope.count("/") else None
        # Functions that several cells share have the scope of the first of them.
        for one in (place.cell, cell):
            number = None if one is None else self._registry.module_id(one)
            if number is not None:
                return number
        return None

    def _collectives_of(self, program: ir.Program) -> Iterator[tuple[str, int | None]]:
        sites = self.recorder.call_sites
        for graph in program.graphs.values():
            for node in graph.nodes:
                name = node.callee.removeprefix("PrimFunc_")
                if name in OPERATORS and node.line is not None and sites.is_user_file(node.line.file):
                    yield name, sites.of_line(node.line.file, node.line.number, node.line.function)

    def _location(self, place: Place) -> int | None:
        """The line of the script's code; where only the framework's leads to it, the line that called the compiled thing."""
        line = place.line
        return self._here if line is None else self.recorder.call_sites.of_line(line.file, line.number, line.function)


def _given(kind: Any) -> Any:
    if isinstance(kind, tuple):
        return tuple(map(_given, kind))
    return Value(kind) if isinstance(kind, ir.Tensor) else None


def _weight(kind: Any, known: tuple[int, Parameter] | None) -> Value | None:
    if not isinstance(kind, ir.Tensor):
        return None
    if known is None:
        return Value(kind)
    return Value(kind, weight=known[0], trained=bool(known[1].requires_grad))


def _reached(root: Value) -> set[int]:
    """The numbers of the parameters that a gradient from here gets to."""
    waiting, seen, found = [root], set(), set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or not value.trained:
            continue
        seen.add(id(value))
        if value.weight is not None:
            found.add(value.weight)
        waiting.extend(value.sources)
    return found


def _reduction(cell: nn.Cell | None, settings: dict[str, Any]) -> str | None:
    known = settings.get("reduction")
    if isinstance(known, str):
        return known
    if isinstance(cell, nn.LossBase):
        return "none" if not cell.reduce else "mean" if cell.average else "sum"
    return None
