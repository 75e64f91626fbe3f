"""Numbers for the user's modules and parameters, without leaving a trace on them."""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Any

from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from trueline.adapters.base import Watch
from trueline.adapters.pytorch import kinds
from trueline.adapters.pytorch.tensors import dead_share, digest, dtype_name, is_plain, row_spread, sketch, statistics, stored
from trueline.record import Recorder, to_json
from trueline.record.identity import ByIdentity

# Trees below this size are kept until the script ends, so that their final state can be recorded.
_KEPT_BYTES = 256 << 20


class Registry(Watch):
    """The trees of root modules that were called, with the rows that describe them."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.module_ids: ByIdentity = ByIdentity()
        self.parameter_ids: ByIdentity = ByIdentity()
        self.optimizer_of: ByIdentity = ByIdentity()
        self.built: ByIdentity = ByIdentity()
        self.loaded: ByIdentity = ByIdentity()
        self.loaded_storages: dict[int, StorageWeakRef] = {}
        self.filled: dict[int, tuple[int | None, StorageWeakRef]] = {}
        self._module_rows: dict[int, list[Any]] = {}
        self._parameter_rows: dict[int, list[Any]] = {}
        self._modules = 0
        self._roots: dict[int, tuple[weakref.ref[nn.Module], str]] = {}
        self._paths: dict[int, dict[str, tuple[weakref.ref[nn.Module], int]]] = {}
        self._seen_tensors: set[tuple[int, str, int]] = set()
        self._parameters: dict[int, weakref.ref[Tensor]] = {}
        self._kept: list[nn.Module] = []
        self._kept_bytes = 0
        self.on_new_parameters: list[Any] = []

    def module_id(self, module: nn.Module) -> int | None:
        found: int | None = self.module_ids.get(module)
        return found

    def root_id(self, module: nn.Module) -> int:
        """The id of a module that the script calls itself; its whole tree is registered at the first call."""
        known = self.module_ids.get(module)
        if known is None:
            frame = self.recorder.call_sites.user_frame(sys._getframe(1))
            root, name = _owner(module, frame)
            self._register(root, name)
            known = self.module_ids[module]
        return int(known)

    def mark_called(self, module_id: int) -> None:
        """Note the line of a module's first call."""
        row = self._module_rows.get(module_id)
        if row is not None and row[8] is None:
            row[8] = self.recorder.location()
            self.recorder.row("module", row)

    def mark_loaded(self, module: nn.Module, location: int | None, *, skip: set[str]) -> None:
        """Note that a load gave the module's parameters their content, but for the names in `skip`."""
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if name in skip:
                continue
            self.loaded[tensor] = location
            if is_plain(tensor) and tensor.numel():
                self.loaded_storages[tensor.data_ptr()] = StorageWeakRef(tensor.untyped_storage())
            row = self._parameter_rows.get(self.parameter_ids.get(tensor, -1))
            if row is not None:
                row[10] = location
                self.recorder.row("parameter", row)

    def _register(self, root: nn.Module, name: str) -> None:
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
        for path, module in root.named_modules(remove_duplicate=False):
            known = paths.get(path)
            if known is None or known[0]() is not module:
                paths[path] = (weakref.ref(module), self._register_module(root_id, name, path, module))
        tensors: list[tuple[str, Tensor, bool]] = [
            (path, tensor, False) for path, tensor in root.named_parameters(remove_duplicate=False)
        ]
        tensors += [(path, tensor, True) for path, tensor in root.named_buffers(remove_duplicate=False)]
        new = []
        for path, tensor, buffer in tensors:
            if (root_id, path, id(tensor)) in self._seen_tensors or kinds.is_uninitialised(tensor):
                continue
            self._seen_tensors.add((root_id, path, id(tensor)))
            number = self._register_tensor(root_id, paths[path.rpartition(".")[0]][1], path, tensor, buffer=buffer)
            if number is not None:
                new.append(number)
        if new:
            for callback in self.on_new_parameters:
                callback()
            self.snapshot(-1 if self.recorder.step == 0 else self.recorder.step, only=new)

    def _register_module(self, root_id: int, name: str, path: str, module: nn.Module) -> int:
        self._modules += 1
        number = self._modules
        same_as = self.module_ids.get(module)
        if same_as is None:
            self.module_ids[module] = number
        row: list[Any] = [
            number, root_id, path, name, type(module).__name__, kinds.kind_of(module), same_as,
            self.built.get(module), None, to_json(kinds.settings_of(module)),
        ]  # fmt: skip
        self._module_rows[number] = row
        self.recorder.row("module", row)
        return number

    def _register_tensor(self, root_id: int, module_id: int, path: str, tensor: Tensor, *, buffer: bool) -> int | None:
        number = len(self._parameter_rows) + 1
        same_as = self.parameter_ids.get(tensor)
        row: list[Any] = [
            number, root_id, module_id, path, to_json(list(tensor.shape)), dtype_name(tensor),
            int(tensor.requires_grad), int(buffer), same_as, self._init_location(tensor), self.loaded.get(tensor),
        ]  # fmt: skip
        self._parameter_rows[number] = row
        self.recorder.row("parameter", row)
        if same_as is not None:
            return None
        self.parameter_ids[tensor] = number
        self._parameters[number] = weakref.ref(tensor)
        return number

    def _init_location(self, tensor: Tensor) -> int | None:
        if not is_plain(tensor) or tensor.numel() == 0:
            return None
        location, storage = self.filled.get(tensor.data_ptr(), (None, None))
        # The memory of a tensor that is gone may have been given to this one.
        return location if storage is not None and storage.cdata == tensor.untyped_storage()._cdata else None

    def _keep(self, root: nn.Module) -> None:
        size = sum(tensor.numel() * tensor.element_size() for tensor in root.parameters() if not kinds.is_uninitialised(tensor))
        if self._kept_bytes + size <= _KEPT_BYTES:
            self._kept_bytes += size
            self._kept.append(root)

    def parameters(self) -> list[tuple[int, Tensor]]:
        """The registered parameters and buffers that are still alive."""
        alive = ((number, reference()) for number, reference in self._parameters.items())
        return [(number, tensor) for number, tensor in alive if tensor is not None]

    def snapshot(self, step: int, *, only: list[int] | None = None, gradients: bool = False) -> None:
        """Record the content of the parameters as it is now."""
        wanted = None if only is None else set(only)
        for number, tensor in self.parameters():
            if (wanted is not None and number not in wanted) or not is_plain(tensor):
                continue
            gradient = _gradient_state(tensor) if gradients else None
            self.recorder.row(
                "snapshot",
                (
                    step,
                    number,
                    int(tensor.requires_grad),
                    self.optimizer_of.get(tensor),
                    gradient,
                    digest(tensor),
                    row_spread(tensor),
                ),
            )
            self.stat(step, "parameter", number, 0, tensor)

    def sample_gradients(self) -> None:
        """Record parameters and gradients as they are between the backward pass and the update."""
        step = self.recorder.step
        self.snapshot(step, gradients=True)
        for number, tensor in self.parameters():
            if tensor.grad is not None and is_plain(tensor.grad):
                self.stat(step, "gradient", number, 0, tensor.grad)

    def note_update(self, number: int, before: Tensor, after: Tensor) -> None:
        """Record what a step of the optimizer added to these values of a parameter."""
        change = after - before
        row = (
            self.recorder.step, "update", number, 0, to_json(list(change.shape)), dtype_name(change), *statistics(change),
            None, None, statistics(before)[4],
        )  # fmt: skip
        self.recorder.row("tensor_stat", row)

    def stat(self, step: int, role: str, subject: int, position: int, tensor: Tensor) -> tuple[Any, ...]:
        """Measure a tensor and record it; returns the row, for a subject that shares the tensor."""
        numbers = statistics(tensor)
        finite = numbers[7] == 0 and numbers[8] == 0
        recorder = self.recorder
        wanted = finite and (recorder.gradients_sketched if role == "gradient" else recorder.sketched and role != "batch")
        row = (
            step, role, subject, position, to_json(list(tensor.shape)), dtype_name(tensor), *numbers,
            sketch(tensor) if wanted else None, dead_share(tensor, role, numbers[6]), None,
        )  # fmt: skip
        self.recorder.row("tensor_stat", row)
        if self.recorder.keeps_tensors and step >= 0:
            self.recorder.keep_tensor(f"{role}/{self._path_of(role, subject)}/{position}", stored(tensor))
        return row

    def _path_of(self, role: str, subject: int) -> str:
        if role == "batch":
            return str(subject)
        if role in {"parameter", "gradient"}:
            row = self._parameter_rows[subject]
            root_name, path = self._module_rows[row[1]][3], row[3]
        else:
            row = self._module_rows[subject]
            root_name, path = row[3], row[2]
        return f"{root_name}.{path}".rstrip(".")

    def finish(self) -> None:
        self.snapshot(self.recorder.step)
        self._kept = []


def _gradient_state(tensor: Tensor) -> str:
    if tensor.grad is None:
        return "none"
    if not is_plain(tensor.grad):
        return "value"
    return "value" if int(tensor.grad.count_nonzero()) else "zero"


def _owner(module: nn.Module, frame: FrameType | None) -> tuple[nn.Module, str]:
    """The largest module in sight of the calling line that contains this one, and the variable that holds it.

    A script that calls `model.encoder(x)` and `model.decoder(z)` itself thus gets one tree named `model`.
    """
    best, name = module, type(module).__name__
    if frame is None:
        return best, name
    size = sum(1 for _ in module.modules())
    found_name = False
    for variables in (frame.f_locals, frame.f_globals):
        for variable, value in list(variables.items()):
            if not isinstance(value, nn.Module) or variable.startswith("__"):
                continue
            held = list(value.modules())
            larger = len(held) > size or (value is module and not found_name)
            if larger and any(part is module for part in held):
                best, size, found_name = value, len(held), True
                name = type(value).__name__ if variable == "self" else variable
    return best, name
