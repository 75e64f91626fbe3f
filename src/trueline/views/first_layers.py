"""Which operations take the inputs of a model first, from the traced steps."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from trueline.model import Module, Op
from trueline.store import Run
from trueline.views.dataflow import SHAPE_ONLY, Trace, plain

WEIGHTED = frozenset(
    """
    linear addmm matmul mm bmm einsum conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d lstm gru rnn_tanh
    rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell multi_head_attention_forward bilinear
    """.split()
)
NORMALISING = frozenset("batch_norm layer_norm group_norm instance_norm rms_norm normalize local_response_norm".split())
LOOKUPS = frozenset("embedding embedding_bag one_hot".split())
# Operations that change neither the scale of values nor which of them are missing; concatenation joins fields.
_PASSED = (SHAPE_ONLY - {"clamp", "clip", "clamp_min", "clamp_max"}) | {"cat", "concat", "stack", "pad"}


class Consumer(msgspec.Struct, frozen=True):
    """An operation that takes an input of the model, as it came or moved only. `joined`: together with other tensors."""

    op: Op
    joined: bool


class FirstLayers:
    def __init__(self, run: Run, trace: Trace | None = None) -> None:
        self.run = run
        self.trace = trace or Trace(run)

    @cached_property
    def _takers(self) -> list[tuple[Op, list[list[Any]]]]:
        """Operations that take tensors of batches, with shape and dtype of those."""
        return [(op, op.settings["fed"]) for op in self.trace.ops.values() if op.settings.get("fed")]

    def consumers(self, shape: tuple[int, ...], dtype: str, root: int) -> list[Consumer]:
        """The first operations in a tree of modules that do more than move the values of an input of this shape."""
        found: list[Consumer] = []
        seen: set[int] = set()
        for op, fed in self._takers:
            if not any(tuple(given[0][1:]) == shape[1:] and len(given[0]) == len(shape) and given[1] == dtype for given in fed):
                continue
            if self._is_within(op, root):
                self._follow(op, found, seen)
        return found

    def is_made_by_a_model(self, shape: tuple[int, ...], called: int) -> bool:
        """Whether an input of this shape comes from another module, maybe after some operations."""
        own = self._parts_of(called)
        given = [source for op in self.trace.ops.values() if op.module in own for source in self.trace.sources(op)]
        waiting = [op for op in given if any(tuple(each.get("shape", ())[1:]) == shape[1:] for each in op.outputs)]
        seen: set[int] = set()
        while waiting:
            op = waiting.pop()
            if op.seq in seen or op.module in own:
                continue
            if op.module is not None:
                return True
            seen.add(op.seq)
            waiting += self.trace.sources(op)
        return False

    def _parts_of(self, called: int) -> set[int]:
        top = self.run.modules[called]
        within = f"{top.path}." if top.path else ""
        return {
            module.id
            for module in self.run.modules.values()
            if module.root == top.root and (module.id == called or module.path.startswith(within))
        }

    def _is_within(self, op: Op, root: int) -> bool:
        module = self.run.modules.get(op.module) if op.module is not None else None
        return module is not None and module.root == self.run.modules[root].root

    def _follow(self, start: Op, found: list[Consumer], seen: set[int]) -> None:
        waiting = [(start, False)]
        while waiting:
            op, together = waiting.pop()
            if op.seq in seen:
                continue
            seen.add(op.seq)
            if plain(op.name) in _PASSED:
                together = together or plain(op.name) in {"cat", "concat", "stack"}
                waiting.extend((taker, together) for taker in self.trace.consumers.get(op.seq, []))
            else:
                found.append(Consumer(op, together))

    def is_normalised_next(self, op: Op) -> bool:
        """Whether batch or layer normalisation is the very next thing that happens to the result."""
        takers = [taker for taker in self.trace.consumers.get(op.seq, []) if plain(taker.name) not in {"backward", "size"}]
        return bool(takers) and all(plain(taker.name) in NORMALISING for taker in takers)

    def module_of(self, op: Op) -> Module | None:
        return self.run.modules.get(op.module) if op.module is not None else None
