"""Where parameters get their content: initialisation, loads, and files that the script writes."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Parameter, Tensor
from mindspore.train import serialization

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.kinds import is_uninitialised, tensors_of
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import digest
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

_MOST_KEYS = 50
# Of how many matrices a load's content is kept, to tell whether it is still there when training starts.
_MOST_MATRICES = 64


class LoadWatch(Watch):
    """Watches `load_checkpoint`, `load_param_into_net`, and parameters as they are made and set."""

    def __init__(self, recorder: Recorder, registry: Registry) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._loading = False

    def install(self, patches: Patches) -> None:
        for owner in (ms, ms.train, serialization):
            for name, watched in (
                ("load_checkpoint", self._watched_read),
                ("load_param_into_net", self._watched_load),
            ):
                if name in vars(owner):
                    original = getattr(serialization, name)
                    patches.replace(owner, name, watched(getattr(original, "__wrapped__", original)))
        patches.replace(Parameter, "__init__", self._watched_construction())
        patches.replace(Parameter, "set_data", self._watched_set_data())

    def _watched_construction(self) -> Any:
        original: Any = Parameter.__init__
        watch = self

        def __init__(parameter: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(parameter, *args, **kwargs)
            if watch.recorder.active and not watch._loading:
                watch._made(parameter)

        return __init__

    def _watched_set_data(self) -> Any:
        original: Any = Parameter.set_data
        watch = self

        def set_data(parameter: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(parameter, *args, **kwargs)
            if watch.recorder.active and not watch._loading and watch._is_untrained(parameter):
                watch._set(parameter)
            return result

        return set_data

    def _is_untrained(self, parameter: Parameter) -> bool:
        """Before the first step, or of a model that was never called so far."""
        return self.recorder.step == 0 or self._registry.parameter_ids.get(parameter) is None

    @guarded
    def _made(self, parameter: Parameter) -> None:
        self._registry.initialised[parameter] = self.recorder.location()

    @guarded
    def _set(self, parameter: Parameter) -> None:
        location = self.recorder.location()
        self._registry.initialised[parameter] = location
        if self._registry.loaded.get(parameter) is not None:
            self._registry.loaded[parameter] = None
            detail = {"shape": list(parameter.shape), "by": "set_data", "matrix": len(parameter.shape) > 1}
            self.recorder.event("init_after_load", detail=detail, location=location)

    def _watched_read(self, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self._loading, before = True, self._loading
            try:
                content = original(*args, **kwargs)
            finally:
                self._loading = before
            path = args[0] if args else kwargs.get("ckpt_file_name")
            if isinstance(content, dict) and self.recorder.active:
                self._read(content, path)
            return content

        return watched

    @guarded
    def _read(self, content: dict[str, Any], path: Any) -> None:
        """Weights came from a file: what they are, to tell whether they arrive in a model."""
        matrices = {name: value for name, value in content.items() if isinstance(value, Tensor) and len(value.shape) > 1}
        if matrices:
            told = list(matrices.items())[:_MOST_MATRICES]
            detail = {"matrices": {name: {"shape": list(value.shape), "content": digest(value)} for name, value in told}}
            self.recorder.event("weights_read", detail=detail, location=self.recorder.location())

    def _watched_load(self, original: Any) -> Any:
        def watched(net: Any, parameter_dict: Any, *args: Any, **kwargs: Any) -> Any:
            if self._loading or not self.recorder.active:
                return original(net, parameter_dict, *args, **kwargs)
            before = self._digests(net)
            self._loading = True
            try:
                result = original(net, parameter_dict, *args, **kwargs)
            finally:
                self._loading = False
            self._loaded(net, before, result)
            return result

        return watched

    @guarded
    def _digests(self, net: Any) -> dict[str, str]:
        return {name: digest(tensor) for name, tensor, _ in tensors_of(net) if not is_uninitialised(tensor)}

    @guarded
    def _loaded(self, net: Any, before: dict[str, str] | None, result: Any) -> None:
        after = self._digests(net) or {}
        location = self.recorder.location()
        # Parameters of the network that the file does not have, and entries of the file that the network does not have.
        missing, unexpected = (list(part) for part in result) if isinstance(result, tuple) and len(result) == 2 else ([], [])
        named = {parameter.name: name for name, parameter, _ in tensors_of(net)}
        missing = [named.get(name, name) for name in missing]
        changed = [name for name, content in after.items() if (before or {}).get(name) != content]
        matrices = [name for name, tensor, buffer in tensors_of(net) if not buffer and len(tensor.shape) > 1 and name in after]
        detail = {
            "keys": len(after),
            "missing": missing[:_MOST_KEYS],
            "unexpected": unexpected[:_MOST_KEYS],
            "missing_count": len(missing),
            "unexpected_count": len(unexpected),
            "changed": len(changed),
            "content": {name: after[name] for name in matrices[:_MOST_MATRICES] if name not in set(missing)},
            "of": type(net).__name__,
        }
        self.recorder.event("load", subject=self._registry.module_id(net), detail=detail, location=location)
        self._registry.mark_loaded(net, location, skip=set(missing))
