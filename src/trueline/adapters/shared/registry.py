"""Numbers for the user's modules and parameters, without leaving a trace on them."""

from __future__ import annotations

import sys
import weakref
from abc import ABC, abstractmethod
from types import FrameType
from typing import Any

import msgspec

from trueline.adapters.base import Watch, guarded
from trueline.model import Module, Parameter
from trueline.recorder import Recorder, to_json
from trueline.recorder.alignment import INITIAL, Alignment
from trueline.recorder.identity import ByIdentity
from trueline.store import StoredTensor

from_json = msgspec.json.decode

# Trees below this size are kept until the script ends, so that their final state can be recorded.
_KEPT_BYTES = 256 << 20


class Registry(Watch, ABC):
    """The trees of root modules that were called, with the rows that describe them. Each framework has one of its own, which
    tells how modules and tensors are read: `kinds` and `tensors` are the adapter's files of these names."""

    kinds: Any
    tensors: Any

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.module_ids: ByIdentity = ByIdentity()
        self.parameter_ids: ByIdentity = ByIdentity()
        self.optimizer_of: ByIdentity = ByIdentity()
        self.built: ByIdentity = ByIdentity()
        self.loaded: ByIdentity = ByIdentity()
        self._module_rows: dict[int, list[Any]] = {}
        self._parameter_rows: dict[int, list[Any]] = {}
        self._modules = 0
        self._roots: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._paths: dict[int, dict[str, tuple[weakref.ref[Any], int]]] = {}
        self._seen_tensors: set[tuple[int, str, int]] = set()
        self._parameters: dict[int, weakref.ref[Any]] = {}
        # The latest row of each parameter: it may be completed until the step ends.
        self._snapshots: dict[int, list[Any]] = {}
        self._kept: list[Any] = []
        self._kept_bytes = 0
        self.on_new_parameters: list[Any] = []

    def module_id(self, module: Any) -> int | None:
        found: int | None = self.module_ids.get(module)
        return found

    def root_id(self, module: Any) -> int:
        """The id of a module that the script calls itself; its whole tree is registered at the first call."""
        known = self.module_ids.get(module)
        if known is None:
            frame = self.recorder.call_sites.user_frame(sys._getframe(1))
            root, name = self._owner(module, frame)
            self._register(root, name)
            known = self.module_ids[module]
        return int(known)

    def mark_called(self, module_id: int) -> None:
        """Note the line of a module's first call."""
        row = self._module_rows.get(module_id)
        if row is not None and row[8] is None:
            row[8] = self.recorder.location()
            self.recorder.row("module", row)

    def mark_loaded(self, module: Any, location: int | None, *, skip: set[str]) -> None:
        """Note that a load gave the module's parameters their content, but for the names in `skip`."""
        for name, tensor, _ in self.kinds.tensors_of(module):
            if name not in skip:
                self.mark_tensor_loaded(tensor, location)

    def mark_tensor_loaded(self, tensor: Any, location: int | None) -> None:
        self.loaded[tensor] = location
        row = self._parameter_rows.get(self.parameter_ids.get(tensor, -1))
        if row is not None:
            row[10] = location
            self.recorder.row("parameter", row)

    def _register(self, root: Any, name: str) -> None:
        root_id = self._modules + 1
        self._roots[root_id] = (weakref.ref(root), name)
        self._keep(root)
        self._scan(root_id)

    def refresh(self, module_id: int) -> None:
        """Register what was added to the tree of a known module since it was last looked at."""
        root_id = self._module_rows[module_id][1]
        self._scan(root_id)

    def _scan(self, root_id: int) -> None:
        """Give numbers to all modules and tensors of a tree that have none yet."""
        reference, name = self._roots[root_id]
        root = reference()
        if root is None:
            return
        paths = self._paths.setdefault(root_id, {})
        for path, module in self.kinds.modules_of(root):
            known = paths.get(path)
            if known is None or known[0]() is not module:
                paths[path] = (weakref.ref(module), self._register_module(root_id, name, path, module))
        new = []
        for path, tensor, buffer in self.kinds.tensors_of(root):
            if (root_id, path, id(tensor)) in self._seen_tensors or self.kinds.is_uninitialised(tensor):
                continue
            self._seen_tensors.add((root_id, path, id(tensor)))
            number = self._register_tensor(root_id, paths[path.rpartition(".")[0]][1], path, tensor, buffer=buffer)
            if number is not None:
                new.append(number)
        if new:
            for callback in self.on_new_parameters:
                callback()
            if self.recorder.alignment is not None and self.recorder.step == 0:
                self._align(self.recorder.alignment, root_id, new)
            self.snapshot(-1 if self.recorder.step == 0 else self.recorder.step, only=new)

    def _register_module(self, root_id: int, name: str, path: str, module: Any) -> int:
        self._modules += 1
        number = self._modules
        same_as = self.module_ids.get(module)
        if same_as is None:
            self.module_ids[module] = number
        row: list[Any] = [
            number, root_id, path, name, type(module).__name__, self.kinds.kind_of(module), same_as,
            self.built.get(module), None, to_json(self.kinds.settings_of(module)),
        ]  # fmt: skip
        self._module_rows[number] = row
        self.recorder.row("module", row)
        return number

    def _register_tensor(self, root_id: int, module_id: int, path: str, tensor: Any, *, buffer: bool) -> int | None:
        number = len(self._parameter_rows) + 1
        same_as = self.parameter_ids.get(tensor)
        row: list[Any] = [
            number, root_id, module_id, path, to_json(list(tensor.shape)), self.tensors.dtype_name(tensor),
            int(tensor.requires_grad), int(buffer), same_as, self.init_location(tensor), self.loaded.get(tensor),
        ]  # fmt: skip
        self._parameter_rows[number] = row
        self.recorder.row("parameter", row)
        if same_as is not None:
            return None
        self.parameter_ids[tensor] = number
        self._parameters[number] = weakref.ref(tensor)
        return number

    def _align(self, alignment: Alignment, root_id: int, new: list[int]) -> None:
        """Give the new parameters of a tree the content that they are to start from, and keep it."""
        rows = [row for row in self._module_rows.values() if row[1] == root_id]
        root = rows[0][3]
        modules = [Module(row[0], row[1], row[2], row[2], row[4], row[5], row[6], None, None, from_json(row[9])) for row in rows]
        held = [self._parameter_rows[number] for number in new]
        parameters = [
            Parameter(
                row[0], row[1], row[2], row[3], row[3], tuple(from_json(row[4])), row[5], bool(row[6]), bool(row[7]), row[8],
                None, None,
            )
            for row in held
        ]  # fmt: skip
        content = alignment.weights(root, modules, parameters)
        for number in new:
            tensor = self._parameters[number]()
            if tensor is None or not self.tensors.is_plain(tensor):
                continue
            if number in content or alignment.perturbs:
                values = content[number] if number in content else self.tensors.array_of(tensor)
                self.tensors.fill(tensor, values if self._parameter_rows[number][7] else alignment.nudged(values))
            self.recorder.keep_tensor(f"{INITIAL}/{self.path_of('parameter', number)}/0", self.tensors.stored(tensor))
        for _, module in self.kinds.modules_of(self._roots[root_id][0]()):
            self.kinds.drop_nothing(module)

    def keep_inputs(self, number: int, call: int, tensors: list[Any]) -> None:
        """Keep what went into a module, at a step whose tensors are wanted whole."""
        for place, tensor in enumerate(tensors):
            if self.tensors.is_plain(tensor):
                name = f"input/{self.path_of('input', number)}/{call * 4 + place}"
                self.recorder.keep_tensor(name, self.tensors.stored(tensor))

    @abstractmethod
    def init_location(self, tensor: Any) -> int | None:
        """The line that filled a tensor last, before it was registered."""

    @abstractmethod
    def gradient_of(self, tensor: Any) -> Any:
        """The gradient that a parameter has now; None for none."""

    def _keep(self, root: Any) -> None:
        size = self.kinds.size_of(root)
        if self._kept_bytes + size <= _KEPT_BYTES:
            self._kept_bytes += size
            self._kept.append(root)

    def parameters(self) -> list[tuple[int, Any]]:
        """The registered parameters and buffers that are still alive."""
        alive = ((number, reference()) for number, reference in self._parameters.items())
        return [(number, tensor) for number, tensor in alive if tensor is not None]

    @guarded
    def snapshot(self, step: int, *, only: list[int] | None = None, gradients: bool = False) -> None:
        """Record the content of the parameters as it is now."""
        wanted = None if only is None else set(only)
        for number, tensor in self.parameters():
            if (wanted is not None and number not in wanted) or not self.tensors.is_plain(tensor):
                continue
            gradient = self._gradient_state(tensor) if gradients else None
            row = self._snapshots[number] = [
                step, number, int(tensor.requires_grad), self.optimizer_of.get(tensor), gradient, self.tensors.digest(tensor),
                self.tensors.row_spread(tensor),
            ]  # fmt: skip
            self.recorder.row("snapshot", row)
            self.stat(step, "parameter", number, 0, tensor)

    @guarded
    def sample_gradients(self) -> None:
        """Record parameters and gradients as they are between the backward pass and the update."""
        step = self.recorder.step
        self.snapshot(step, gradients=True)
        for number, tensor in self.parameters():
            gradient = self.gradient_of(tensor)
            if gradient is not None and self.tensors.is_plain(gradient):
                self.stat(step, "gradient", number, 0, gradient)

    @guarded
    def note_update(self, number: int, before: Any, after: Any) -> None:
        """Record what a step of the optimizer added to these values of a parameter."""
        change = after - before
        row = (
            self.recorder.step, "update", number, 0, to_json(list(change.shape)), self.tensors.dtype_name(change),
            *self.tensors.statistics(change), None, None, self.tensors.statistics(before)[4],
        )  # fmt: skip
        self.recorder.row("tensor_stat", row)

    def stat(self, step: int, role: str, subject: int, position: int, tensor: Any) -> tuple[Any, ...]:
        """Measure a tensor and record it; returns the row, for a subject that shares the tensor."""
        row = self.measured(step, role, subject, position, tensor)
        self.recorder.row("tensor_stat", row)
        if self.recorder.keeps_tensors and step >= 0:
            self.keep_whole(row, self.tensors.stored(tensor))
        return row

    def measured(self, step: int, role: str, subject: int, position: int, tensor: Any) -> tuple[Any, ...]:
        """The row of a tensor, not recorded yet."""
        numbers = self.tensors.statistics(tensor)
        finite = numbers[7] == 0 and numbers[8] == 0
        recorder = self.recorder
        wanted = finite and (recorder.gradients_sketched if role == "gradient" else recorder.sketched and role != "batch")
        return (
            step, role, subject, position, to_json(list(tensor.shape)), self.tensors.dtype_name(tensor), *numbers,
            self.tensors.sketch(tensor) if wanted else None, self.tensors.dead_share(tensor, role, numbers[6]), None,
        )  # fmt: skip

    def keep_whole(self, row: tuple[Any, ...], tensor: StoredTensor) -> None:
        """Keep a tensor beside its row."""
        _, role, subject, position = row[:4]
        self.recorder.keep_tensor(f"{role}/{self.path_of(role, subject)}/{position}", tensor)

    def path_of(self, role: str, subject: int) -> str:
        """The name under which something is kept: `root.path`."""
        if role == "batch":
            return str(subject)
        if role in {"parameter", "gradient"}:
            row = self._parameter_rows[subject]
            root_name, path = self._module_rows[row[1]][3], row[3]
        else:
            row = self._module_rows[subject]
            root_name, path = row[3], row[2]
        return f"{root_name}.{path}".rstrip(".")

    @guarded
    def finish(self) -> None:
        self.snapshot(self.recorder.step)
        self._kept = []

    def _gradient_state(self, tensor: Any) -> str:
        gradient = self.gradient_of(tensor)
        if gradient is None:
            return "none"
        return "value" if not self.tensors.is_plain(gradient) or self.tensors.any_nonzero(gradient) else "zero"

    def _owner(self, module: Any, frame: FrameType | None) -> tuple[Any, str]:
        """The largest module in sight of the calling line that contains this one, and the variable that holds it.

        A script that calls `model.encoder(x)` and `model.decoder(z)` itself thus gets one tree named `model`.
        """
        best, name = module, type(module).__name__
        if frame is None:
            return best, name
        size = len(self.kinds.parts_of(module))
        found_name = False
        for variables in (frame.f_locals, frame.f_globals):
            for variable, value in list(variables.items()):
                if not self.kinds.is_model(value) or variable.startswith("__"):
                    continue
                held = self.kinds.parts_of(value)
                larger = len(held) > size or (value is module and not found_name)
                if larger and any(part is module for part in held):
                    best, size, found_name = value, len(held), True
                    name = type(value).__name__ if variable == "self" else variable
        return best, name
