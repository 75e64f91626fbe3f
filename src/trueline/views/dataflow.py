"""Walks over the traced operations of the first steps: where a tensor came from, and where it went.

References are those of `Op.inputs`. Operation names are compared without leading and trailing underscores, so that
`relu_` and `_softmax` are `relu` and `softmax`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from trueline.model import Event, Location, Op
from trueline.store import Run

# Operations that move or copy values without changing them; clamping keeps what a value means.
SHAPE_ONLY = frozenset(
    """
    view reshape view_as reshape_as transpose permute movedim moveaxis swapaxes swapdims t mT T squeeze unsqueeze contiguous
    flatten unflatten getitem select narrow index_select index slice expand expand_as chunk split unbind clone alias to float
    double half bfloat16 type cpu cuda type_as clamp clip clamp_min clamp_max identity dropout masked_select gather ravel
    """.split()
)
# Operations that move axes or mix the order of values among axes.
MOVES_AXES = frozenset("transpose permute movedim moveaxis swapaxes swapdims t mT T".split())
RESHAPES = frozenset("view reshape view_as reshape_as flatten unflatten".split())
ELEMENTWISE = frozenset(
    """
    add sub subtract mul multiply div divide true_divide truediv neg negative pow square sqrt rsqrt abs exp log log1p expm1
    log2 log10 where maximum minimum lerp addcmul addcdiv reciprocal xlogy
    """.split()
)
REDUCTIONS = frozenset("mean sum nansum nanmean norm logsumexp max min amax amin median prod std var trace diagonal diag".split())
NO_DERIVATIVE = frozenset(
    "argmax argmin argsort gt lt ge le eq ne greater less bool int long one_hot bincount multinomial bernoulli topk".split()
)
ZERO_DERIVATIVE = frozenset("round floor ceil sign sgn trunc heaviside fix".split())
COPIES_VALUES = frozenset("tensor as_tensor from_numpy asarray new_tensor scalar_tensor FloatTensor Tensor Variable".split())
LEAVES_FRAMEWORK = frozenset("numpy tolist item array".split())


def plain(name: str) -> str:
    """The name of an operation without the marks of in-place and internal variants."""
    return name.rpartition(".")[2].strip("_")


def is_in(op: Op, names: frozenset[str]) -> bool:
    return plain(op.name) in names


def shape_of(op: Op) -> tuple[int, ...]:
    """The shape of an operation's first output; empty for none."""
    return tuple(op.outputs[0].get("shape") or ()) if op.outputs else ()


def needs_gradient(op: Op) -> bool:
    return any(output.get("requires_grad") for output in op.outputs)


class Trace:
    """The traced operations of a run, linked by their references."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.ops = {op.seq: op for op in run.ops}

    def producer(self, reference: Any) -> Op | None:
        """The operation behind a reference (`o12`, or the bare number of a loss input's `op`)."""
        if isinstance(reference, int):
            return self.ops.get(reference)
        if isinstance(reference, str) and reference.startswith("o"):
            digits = reference[1:].split(":")[0].split(".")[0]
            return self.ops.get(int(digits)) if digits.isdigit() else None
        return None

    def sources(self, op: Op) -> list[Op]:
        return [source for source in map(self.producer, op.inputs) if source is not None]

    def back_through(self, start: Op | None, names: frozenset[str]) -> Op | None:
        """Walk back from an operation through those of the given names, along their first input, to the first other one."""
        op = start
        while op is not None and is_in(op, names):
            op = next(iter(self.sources(op)), None)
        return op

    def region(self, start: Op | None, names: frozenset[str]) -> Iterator[Op]:
        """`start`, and everything behind it that is reached through operations of the given names only; latest first."""
        waiting, seen = [start] if start is not None else [], set()
        while waiting:
            op = waiting.pop(0)
            if op.seq in seen:
                continue
            seen.add(op.seq)
            yield op
            if is_in(op, names):
                waiting.extend(self.sources(op))

    def ancestors(self, starts: Iterable[Op | None]) -> set[int]:
        """The numbers of the given operations and of all that went into them."""
        waiting, seen = [op for op in starts if op is not None], set()
        while waiting:
            op = waiting.pop()
            if op.seq not in seen:
                seen.add(op.seq)
                waiting.extend(self.sources(op))
        return seen

    @cached_property
    def consumers(self) -> dict[int, list[Op]]:
        found: dict[int, list[Op]] = {}
        for op in self.ops.values():
            for source in self.sources(op):
                found.setdefault(source.seq, []).append(op)
        return found

    def descendants(self, starts: Iterable[Op]) -> set[int]:
        """The numbers of the given operations and of all that took from them."""
        waiting, seen = list(starts), set()
        while waiting:
            op = waiting.pop()
            if op.seq not in seen:
                seen.add(op.seq)
                waiting.extend(self.consumers.get(op.seq, []))
        return seen

    @cached_property
    def users_of_parameter(self) -> dict[int, list[Op]]:
        """By parameter id: the operations that took the parameter itself."""
        found: dict[int, list[Op]] = {}
        for op in self.ops.values():
            for reference in op.inputs:
                if reference.startswith("p") and reference[1:].isdigit():
                    found.setdefault(int(reference[1:]), []).append(op)
        return found

    @cached_property
    def backwards(self) -> list[Event]:
        return self.run.events_of("backward")

    @cached_property
    def backward_roots(self) -> list[Op]:
        """The traced operations whose outputs backward passes started from."""
        roots = [self.producer(event.detail.get("of")) for event in self.backwards]
        return [op for op in roots if op is not None]

    @cached_property
    def loss_ancestors(self) -> set[int]:
        return self.ancestors(self.backward_roots)


def line_of(run: Run, op: Op) -> Location | None:
    """The line to show for an operation: its own, or, for a ready-made layer in a container, the line that built the layer."""
    module = run.modules.get(op.module) if op.module is not None else None
    if module is not None and module.built is not None and module.kind not in ("other", "container"):
        parent = parent_of(run, module.id)
        if parent is not None and run.modules[parent].kind == "container":
            return module.built.of_module(module.name)
    if op.location is None:
        return None
    return op.location.of_module(module.name if module is not None else None)


def parent_of(run: Run, module: int) -> int | None:
    """The id of the module that holds this one; None for a root."""
    child = run.modules[module]
    if not child.path:
        return None
    path = child.path.rpartition(".")[0]
    for other in run.modules.values():
        if other.root == child.root and other.path == path:
            return other.id
    return None


def is_within(path: str, outer: str) -> bool:
    """Whether the module at `path` is the one at `outer` or lies inside of it."""
    return not outer or path == outer or path.startswith(outer + ".")
