"""Where parameters get their content: init functions, in-place fills before training, and loads."""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.kinds import is_uninitialised
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.tensors import digest, is_plain
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

_FILLS = ("fill_", "zero_", "normal_", "uniform_", "copy_", "clamp_", "mul_")
_MOST_KEYS = 50
# Of how many matrices a load's content is kept, to tell whether it is still there when training starts.
_MOST_MATRICES = 64


class LoadWatch(Watch):
    """Watches `load_state_dict`, `torch.nn.init` and, until training starts, tensors that are filled in place."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._loading = False
        self._loaders: set[CodeType] = set()
        self._fills = Patches()

    def install(self, patches: Patches) -> None:
        for name, function in list(vars(nn.init).items()):
            if name.endswith("_") and not name.startswith("_") and callable(function):
                patches.replace(nn.init, name, self._watched_fill(function, is_init=True))
        if self.recorder.step == 0:
            for name in _FILLS:
                self._fills.replace(Tensor, name, self._watched_fill(getattr(Tensor, name)))
        patches.replace(nn.Module, "load_state_dict", self._watched_load())
        patches.replace(torch, "load", self._watched_read())

    def training_started(self) -> None:
        """From the first step on, tensors are filled by training itself."""
        self._fills.undo()

    uninstall = training_started

    def _watched_fill(self, original: Any, *, is_init: bool = False) -> Any:
        """Init functions are watched all along: a script may train several models, one after the other."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            result = original(*args, **kwargs)
            tensor = args[0] if args else kwargs.get("tensor")
            early = is_init or self.recorder.step == 0
            if early and isinstance(tensor, Tensor) and not self._loading and self.recorder.active:
                self._filled(tensor, original.__name__)
            return result

        return watched

    @guarded
    def _filled(self, tensor: Tensor, by: str) -> None:
        if not is_plain(tensor) or is_uninitialised(tensor) or not tensor.numel():
            return
        location, address = self.recorder.location(), tensor.data_ptr()
        self._registry.filled[address] = (location, StorageWeakRef(tensor.untyped_storage()))
        loaded = self._registry.loaded_storages.get(address)
        if loaded is not None and loaded.cdata == tensor.untyped_storage()._cdata and not loaded.expired():
            detail = {"shape": list(tensor.shape), "by": by, "matrix": tensor.dim() > 1}
            # Once is enough: init functions fill through the methods that are watched too.
            del self._registry.loaded_storages[address]
            self.recorder.event("init_after_load", detail=detail, location=self._line_beside_load() or location)

    def _line_beside_load(self) -> int | None:
        """The line in the function that loaded: `model.apply(init)` below the load, rather than a line inside of `init`."""
        sites = self.recorder.call_sites
        frame = sites.user_frame(sys._getframe(1))
        while frame is not None and frame.f_code not in self._loaders:
            frame = sites.user_frame(frame.f_back)
        return sites.of_frame(frame)

    def _note_loader(self) -> None:
        sites = self.recorder.call_sites
        frame = sites.user_frame(sys._getframe(1))
        while frame is not None:
            self._loaders.add(frame.f_code)
            frame = sites.user_frame(frame.f_back)

    def _watched_load(self) -> Any:
        original: Any = nn.Module.load_state_dict

        def watched(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._loading or not self.recorder.active:
                return original(module, *args, **kwargs)
            before = self._digests(module)
            own = self._holds_own(module, args[0] if args else kwargs.get("state_dict"))
            self._loading = True
            try:
                result = original(module, *args, **kwargs)
            finally:
                self._loading = False
            self._loaded(module, before, result, own=bool(own))
            return result

        return watched

    def _watched_read(self) -> Any:
        original: Any = torch.load

        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if isinstance(result, dict):
                self._read(result)
            return result

        return watched

    @guarded
    def _read(self, content: dict[Any, Any]) -> None:
        """Weights came from a file: what they are, to tell whether they arrive in a model."""
        parts = [content, *(value for value in content.values() if isinstance(value, dict))]
        matrices = max((_matrices_in(part) for part in parts), key=len)
        if matrices:
            detail = {
                "matrices": {
                    name: {"shape": list(tensor.shape), "content": digest(tensor)}
                    for name, tensor in list(matrices.items())[:_MOST_MATRICES]
                }
            }
            self.recorder.event("weights_read", detail=detail, location=self.recorder.location())

    @guarded
    def _digests(self, module: nn.Module) -> dict[str, str]:
        with torch.no_grad():
            return {
                name: digest(tensor)
                for name, tensor in module.state_dict(keep_vars=True).items()
                if isinstance(tensor, Tensor) and is_plain(tensor) and not is_uninitialised(tensor)
            }

    @guarded
    def _holds_own(self, module: nn.Module, state: Any) -> bool:
        """Whether all tensors that are to be loaded are the module's own: `state_dict()` does not copy."""
        if not isinstance(state, dict) or not state:
            return False
        own = {tensor.data_ptr() for tensor in module.state_dict().values() if isinstance(tensor, Tensor) and is_plain(tensor)}
        given = [tensor for tensor in state.values() if isinstance(tensor, Tensor) and tensor.numel()]
        return bool(given) and all(is_plain(tensor) and tensor.data_ptr() in own for tensor in given)

    @guarded
    def _loaded(self, module: nn.Module, before: dict[str, str] | None, result: Any, *, own: bool) -> None:
        after = self._digests(module) or {}
        location = self.recorder.location()
        changed = [name for name, content in after.items() if (before or {}).get(name) != content]
        missing = list(getattr(result, "missing_keys", []))
        unexpected = list(getattr(result, "unexpected_keys", []))
        matrices = [name for name, parameter in module.named_parameters() if parameter.dim() > 1 and name in after]
        self._note_loader()
        detail = {
            "keys": len(after),
            "missing": missing[:_MOST_KEYS],
            "unexpected": unexpected[:_MOST_KEYS],
            "missing_count": len(missing),
            "unexpected_count": len(unexpected),
            "changed": len(changed),
            "content": {name: after[name] for name in matrices[:_MOST_MATRICES] if name not in set(missing)},
            "of": type(module).__name__,
            "own": own,
        }
        self.recorder.event("load", subject=self._registry.module_id(module), detail=detail, location=location)
        # Going back to earlier weights gives nothing to those that have not changed since.
        unchanged = set() if self.recorder.step == 0 else set(after) - set(changed)
        self._registry.mark_loaded(module, location, skip=unchanged.union(missing))


def _matrices_in(part: dict[Any, Any]) -> dict[str, Tensor]:
    """The weights of a state dict with more than one axis; empty for anything else."""
    if not all(isinstance(name, str) for name in part):
        return {}
    return {name: value for name, value in part.items() if isinstance(value, Tensor) and value.dim() > 1 and is_plain(value)}
