"""Which cell a function of a compiled program belongs to."""

from __future__ import annotations

import re
from typing import Any

from mindspore import nn

from trueline.adapters.mindspore.compiled import ir
from trueline.adapters.mindspore.kinds import parts_of

_CALLED = re.compile(r"\bself\.(\w+)(?:\[[^\]]*\])?\(")
_GRAPH_NAME = re.compile(r"@(\d+_\S+?_\d+)(?=[\s,)\]}]|$)")


class Cells:
    """Finds cells by their scope, which a compiled cell has; in compiled functions by their class and what they hold."""

    def __init__(self, program: ir.Program, root: nn.Cell | None, others: list[nn.Cell]) -> None:
        self._program = program
        self._root = root
        self._others = others
        self._by_scope: dict[str, nn.Cell | None] = {}
        self._weights: dict[str, frozenset[str]] = {}

    def at_scope(self, scope: str) -> nn.Cell | None:
        """`Default/network-WithLossCell/_backbone-Net` → the cell at `network._backbone` of the compiled one."""
        if scope not in self._by_scope:
            self._by_scope[scope] = self._walked(scope.split("/")[1:])
        return self._by_scope[scope]

    def _walked(self, steps: list[str]) -> nn.Cell | None:
        cell: Any = self._root
        for step in steps:
            below = None if cell is None else cell._cells.get(step.rpartition("-")[0])
            if below is None:
                # Recomputation, derivatives and the like put words of their own between the names of cells.
                continue
            cell = below
        return cell

    def of_function(self, graph: ir.Graph, around: nn.Cell | None, line: ir.Line | None) -> nn.Cell | None:
        """The cell whose `construct` this is; None for any other function."""
        if not graph.label.endswith("_construct"):
            return None
        if self._root is not None and graph.scope.count("/"):
            return self.at_scope(graph.scope)
        label = graph.label.removesuffix("_construct")
        around = around if around is not None else self._root
        places = [around] if around is not None else self._others
        found = [part for place in places for part in parts_of(place) if label.endswith(f"_{type(part).__name__}")]
        if around is not None and not found:
            found = [part for place in self._others for part in parts_of(place) if label.endswith(f"_{type(part).__name__}")]
        return self._narrowed(graph, around, found, line)

    def _narrowed(self, graph: ir.Graph, around: nn.Cell | None, found: list[nn.Cell], line: ir.Line | None) -> nn.Cell | None:
        if len(found) <= 1:
            return found[0] if found else None
        used = self._weights_of(graph.name)
        if used:
            named = {id(cell): {parameter.name for parameter in cell.get_parameters()} for cell in found}
            holding = [cell for cell in found if used <= named[id(cell)]]
            return min(holding, key=lambda cell: len(named[id(cell)]), default=None)
        called = {} if around is None else around._cells
        names = _CALLED.findall(line.text) if line is not None else []
        return next((called[name] for name in names if any(called.get(name) is cell for cell in found)), found[0])

    def _weights_of(self, name: str) -> frozenset[str]:
        """The names of all parameters that a function uses, itself or in what it calls."""
        known = self._weights.get(name)
        if known is not None:
            return known
        self._weights[name] = frozenset()
        graph = self._program.graphs.get(name)
        if graph is None:
            return frozenset()
        used: set[str] = set()
        for node in graph.nodes:
            for text in (node.callee, *node.arguments):
                if text.startswith("$(@"):
                    weight = self._program.weights.get(text[:-1].partition(":")[2])
                    used.update(() if weight is None else (weight,))
                else:
                    for called in _GRAPH_NAME.findall(text):
                        used |= self._weights_of(called)
        if graph.result.startswith("@"):
            used |= self._weights_of(graph.result[1:])
        self._weights[name] = frozenset(used)
        return self._weights[name]
