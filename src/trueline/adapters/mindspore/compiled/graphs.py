"""What the compiler tells of compiled training steps: their operations, and which parameters a gradient gets to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from mindspore import nn

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.compiled.ir_files import remove
from trueline.adapters.mindspore.compiled.trace import CompiledTrace
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.registry import Registry
from trueline.recorder import Recorder

# What is not seen of a step whose operations were not read; and of losses that only values can judge.
_OF_GRAPH = ("operations", "freezing")
_OF_LOSSES = ("losses",)


class CompiledGraph(msgspec.Struct):
    """One compiled thing that trains. `unread`: what is not seen of it. `cut_off` and `reached`: the parameters that no gradient
    gets to, and those that one gets to. `backward`: what is known of every backward pass. `collectives`: the operators by which
    ranks exchange something, with their lines. `called`: the modules that it calls, where its operations were read. `untapped`:
    it has no taps in it (graph_tensors.py); `proven`: it has run with them."""

    unread: tuple[str, ...] = (*_OF_GRAPH, *_OF_LOSSES)
    cut_off: set[int] = set()
    reached: set[int] = set()
    backward: dict[str, Any] = {}
    collectives: list[tuple[str, int | None]] = []
    called: set[int] | None = None
    untapped: bool = False
    proven: bool = False


class CompiledGraphs(Watch):
    """Reads what the compiler writes, and completes the record of a step with it."""

    def __init__(self, recorder: Recorder, registry: Registry, optimizers: OptimizerWatch) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._optimizers = optimizers
        self._trace = CompiledTrace(recorder, registry)
        self._graphs: dict[Any, CompiledGraph] = {}

    def of(self, key: Any) -> CompiledGraph:
        return self._graphs.setdefault(key, CompiledGraph())

    def folder(self, graph: CompiledGraph | None) -> Path | None:
        """Where the compiler is to write if the coming call compiles; None when nothing is to be learned from it."""
        recorder = self.recorder
        return recorder.scratch if graph is not None and graph.unread and recorder.active and recorder.traced else None

    @property
    def unread(self) -> set[str]:
        """What is not seen of at least one of them."""
        return {part for graph in self._graphs.values() for part in graph.unread}

    @property
    def loss_calls(self) -> int:
        """How many loss calls the last program that was read has."""
        return self._trace.loss_calls

    @guarded
    def read(
        self, graph: CompiledGraph, files: list[Path], batch: int | None, root: nn.Cell | None, cells: list[nn.Cell]
    ) -> str | None:
        """Record the operations of what was compiled in a call; gives the reference of the loss."""
        trace = self._trace
        try:
            read = False
            for path in files:
                with path.open(encoding="utf-8", errors="replace") as lines:
                    read = trace.read(lines, batch, root, cells)
                if read:
                    break
        finally:
            remove(self.recorder.scratch)
        if read:
            graph.collectives = trace.collectives
        if not read or trace.root is None or not trace.complete:
            return None
        trainable = {number for number, parameter in self._registry.parameters() if parameter.requires_grad}
        graph.unread = () if trace.losses_judged else _OF_LOSSES
        graph.reached = trace.reached
        graph.called = trace.called
        graph.cut_off = trainable - trace.reached if trace.reached else set()
        function = trace.root_origin if trace.root.trained else None
        graph.backward = {"shape": list(trace.root.shape), "leaf": False, "create_graph": False, "function": function}
        return trace.root_origin

    def note_cut_off(self, graph: CompiledGraph, *, first: bool) -> None:
        """The backward pass of this thing is over. A step may have several, each from a part of the model."""
        self._registry.cut_off = set(graph.cut_off) if first else graph.cut_off & self._registry.cut_off

    @guarded
    def note_gradients(self, optimizer: Any, graph: CompiledGraph) -> int:
        """Tell parameters that no gradient gets to from those that one gets to and that the step changed; counts the first."""
        without = self._optimizers.count_without_gradient(optimizer)
        if not self.recorder.sampled:
            return without
        for number, moved in self._optimizers.moved(optimizer):
            if number in graph.cut_off:
                self._registry.note_gradient_state(number, "none")
            elif moved and number in graph.reached:
                self._registry.note_gradient_state(number, "value")
        return without
