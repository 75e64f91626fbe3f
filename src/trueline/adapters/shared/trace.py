"""The operations of a traced step: which tensor came from which operation, and which results were never used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trueline.adapters.base import Watch, guarded
from trueline.adapters.shared.registry import Registry
from trueline.recorder import Recorder, to_json

MOST_OPS_PER_STEP = 20_000
_INPUTS, _USED = 5, 8


class Trace(Watch):
    """Keeps the rows of a step's operations until the step is over. Each framework has its own way to see operations."""

    def __init__(self, recorder: Recorder, registry: Registry, dtype_name: Callable[[Any], str]) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._dtype_name = dtype_name
        self._modules: list[int] = []
        self._origins: dict[int, str] = {}
        self._alive: list[Any] = []
        self._rows: dict[str, list[Any]] = {}

    def key_of(self, tensor: Any) -> Any:
        """What tells tensors of a step apart, all of which are kept alive."""
        return id(tensor)

    def parameter_of(self, tensor: Any) -> int | None:
        found: int | None = self._registry.parameter_ids.get(tensor)
        return found

    def feed(self, fed: list[tuple[int | None, Any]]) -> None:
        """These tensors are of these batches."""
        for batch, tensor in fed:
            if batch is not None:
                self._origins.setdefault(self.key_of(tensor), f"b{batch}")
                self._alive.append(tensor)

    @guarded
    def write(self) -> None:
        """The step is over: record its operations, and which results were never used."""
        for row in self._rows.values():
            self.recorder.row("op", row)
        self._rows = {}
        self._origins = {}
        self._alive = []

    @property
    def is_full(self) -> bool:
        return len(self._rows) >= MOST_OPS_PER_STEP

    def enter_module(self, number: int) -> None:
        self._modules.append(number)

    def leave_module(self) -> None:
        if self._modules:
            self._modules.pop()

    def origin(self, tensor: Any, *, use: bool = True) -> str:
        """Where a tensor came from: `o<seq>`, `p<id>`, `b<seq>`, `g<seq>`, or `t` when that is not known."""
        known = self._origins.get(self.key_of(tensor))
        if known is None:
            parameter = self.parameter_of(tensor)
            return "t" if parameter is None else f"p{parameter}"
        if use and known in self._rows:
            self._rows[known][_USED] = 1
        return known

    def note_gradients(self, seq: int, gradients: list[Any]) -> None:
        """These tensors are derivatives that the script asked for, in the event of this number: `g<seq>`."""
        for tensor in gradients:
            self._origins[self.key_of(tensor)] = f"g{seq}"
            self._alive.append(tensor)

    def extend(self, origin: str, taken: list[Any], outputs: list[Any]) -> None:
        """Let an operation that was noted take these tensors too, and give those instead."""
        row = self._rows[origin]
        row[_INPUTS] = to_json([*msgspec.json.decode(row[_INPUTS]), *map(self.origin, taken)])
        row[_USED] = 0
        for tensor in outputs:
            self._origins[self.key_of(tensor)] = origin
            self._alive.append(tensor)

    def note(
        self, name: str, taken: list[Any], outputs: list[Any], settings: dict[str, Any], needs_gradient: Callable[[Any], bool]
    ) -> None:
        """An operation took these tensors and gave those."""
        recorder = self.recorder
        inputs = [self.origin(tensor) for tensor in taken]
        seq = recorder.next_seq()
        fed = [
            [list(tensor.shape), self._dtype_name(tensor)]
            for tensor, source in zip(taken, inputs, strict=True)
            if source[0] == "b"
        ]
        if fed:
            settings["fed"] = fed
        described = [
            {"shape": list(tensor.shape), "dtype": self._dtype_name(tensor), "requires_grad": needs_gradient(tensor)}
            for tensor in outputs
        ]
        row: list[Any] = [
            seq, recorder.step, name, self._modules[-1] if self._modules else None, recorder.location(),
            to_json(inputs), to_json(described), to_json(settings), 0,
        ]  # fmt: skip
        self._rows[f"o{seq}"] = row
        for tensor in outputs:
            self._origins[self.key_of(tensor)] = f"o{seq}"
            self._alive.append(tensor)


def index_text(value: Any, kind_of: Callable[[Any], str]) -> str:
    """An index as it is written: `:, -1`; tensors and lists by their kind."""
    if isinstance(value, tuple):
        return ", ".join(index_text(part, kind_of) for part in value)
    if isinstance(value, slice):
        parts = ["" if part is None else str(part) for part in (value.start, value.stop, value.step)]
        return ":".join(parts[:2] if not parts[2] else parts)
    if isinstance(value, int) or value is None:
        return str(value)
    return "..." if value is Ellipsis else kind_of(value)
