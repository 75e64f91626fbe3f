"""Calls of modules: the root calls of every step, and on sampled steps every module inside of them."""

from __future__ import annotations

import inspect
from collections import deque
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.nn.modules.loss import _Loss
from torch.utils.hooks import unserializable_hook

from trueline.adapters.base import guarded
from trueline.adapters.pytorch.data import BatchWatch
from trueline.adapters.pytorch.exact import ExactReplay
from trueline.adapters.pytorch.graph import OpTrace
from trueline.adapters.pytorch.kinds import drops_units, kind_of, uses_batch_statistics
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.scores import ScoreWatch
from trueline.adapters.pytorch.tensors import is_plain, tensors_in, under_transform
from trueline.adapters.shared.modules import ModuleWatch as SharedModuleWatch
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.identity import ByIdentity
from trueline.recorder.patches import Patches

_MOST_CALLS_PER_STEP = 4
# Positions in the rows of the table `root_call`.
_MODULE, _TRAINING, _GRAD, _LOSS = 2, 4, 5, 6


class ModuleWatch(SharedModuleWatch):
    """Watches `nn.Module.__call__` at the class, so that nothing is attached to any module."""

    def __init__(
        self,
        recorder: Recorder,
        registry: Registry,
        batches: BatchWatch,
        scores: ScoreWatch,
        trace: OpTrace,
        progress: StepProgress,
    ) -> None:
        super().__init__(recorder, registry)
        self._exact = ExactReplay(recorder)
        self._scores = scores
        self._registry = registry
        self._batches = batches
        self._trace = trace
        self._progress = progress
        self._inside = False
        self._detailed = False
        self._root_training = False
        self._inside_dropout = False
        self._calls: dict[int, int] = {}
        self._calls_step = -1
        self._last_output: tuple[Tensor, tuple[Any, ...]] | None = None
        self._mode_sensitive: ByIdentity = ByIdentity()
        self._graphless_outputs: deque[tuple[int, StorageWeakRef]] = deque(maxlen=16)
        self._call = nn.Module.__call__
        self.compiles = False

    def install(self, patches: Patches) -> None:
        original = self._call = nn.Module.__call__
        watch = self

        is_compiling = torch.compiler.is_compiling

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it replaces that method
            if is_compiling():
                return original(module, *args, **kwargs)
            if watch._inside:
                if watch._detailed:
                    return watch._inner_call(module, args, kwargs)
                return original(module, *args, **kwargs)
            if not watch.recorder.active or watch._progress.inside_backward or not watch._is_training_thread():
                # A call inside of the backward pass is activation checkpointing: the forward pass over again.
                return original(module, *args, **kwargs)
            if not watch.recorder.sampled and isinstance(module, _Loss):
                return original(module, *args, **kwargs)
            return watch._root_call(module, args, kwargs)

        patches.replace(nn.Module, "__call__", __call__)
        self._install_construction(patches, nn.Module)
        self._install_mode(patches, nn.Module, "train")
        self._install_dropout(patches)
        self._install_compile(patches)

    # Functional dropout, compilation

    def _install_dropout(self, patches: Patches) -> None:
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
            patches.replace(F, name, self._watched_dropout(getattr(F, name)))

        if self.recorder.alignment is not None:
            patches.replace(F, "scaled_dot_product_attention", _without_dropout(F.scaled_dot_product_attention))

    def _watched_dropout(self, original: Any) -> Any:
        def watched(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:  # noqa: A002, FBT001, FBT002
            if torch.compiler.is_compiling():
                return original(input, p, training, inplace)
            if self.recorder.alignment is not None:
                return original(input, p, False, inplace)  # noqa: FBT003 - torch's own signature
            forced = training and p > 0 and self._inside and not self._root_training
            if not forced or self._inside_dropout or under_transform():
                return original(input, p, training, inplace)
            self._dropout_forced()
            self._inside_dropout = True
            try:
                return original(input, p, training, inplace)
            finally:
                self._inside_dropout = False

        return watched

    def _install_compile(self, patches: Patches) -> None:
        original = torch.compile
        watch = self

        def compiled(*args: Any, **kwargs: Any) -> Any:
            watch.compiles = True
            return original(*args, **kwargs)

        patches.replace(torch, "compile", compiled)

    # Root calls

    def _root_call(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        row = self._enter_root(module, args, kwargs)
        if row is None:
            return self._call(module, *args, **kwargs)
        self._inside = True
        try:
            output = self._inner_call(module, args, kwargs) if self._detailed else self._call(module, *args, **kwargs)
        finally:
            self._inside = False
            self._detailed = False
        if self.recorder.sampled or not row[_GRAD] or not row[_TRAINING]:
            self._leave_root(module, row, output)
        return output

    @guarded
    def _enter_root(self, module: nn.Module, args: Any, kwargs: Any) -> list[Any] | None:
        recorder = self.recorder
        if isinstance(module, torch.jit.ScriptModule) or torch.jit.is_tracing() or under_transform():
            return None
        grad = torch.is_grad_enabled()
        if grad and recorder.step and self._registry.module_id(module) is None and next(module.parameters(), None) is not None:
            recorder.look_closely()
        number = self._registry.root_id(module)
        if recorder.sampled:
            self._registry.refresh(number)
        inputs = tensors_in((args, kwargs) if kwargs else args)
        is_loss = isinstance(module, _Loss)
        fed_by = self._source_of(inputs)
        alignment = None if is_loss else recorder.alignment
        if alignment is not None and grad:
            self._batches.align_direct(alignment, inputs)
        batch = None if is_loss else self._batches.batch_of(inputs, number)
        if alignment is not None:
            self._batches.went_in(batch, training=grad)
        dropouts, norms = self._mode_sensitive_parts(module)
        self._root_training = module.training
        row: list[Any] = [
            recorder.next_seq(), recorder.step, number, recorder.location(), int(module.training), int(grad), int(is_loss),
            len(dropouts), sum(part.training for part in dropouts), len(norms), sum(part.training for part in norms),
            batch, fed_by,
        ]  # fmt: skip
        recorder.row("root_call", row)
        if not is_loss:
            evaluating = self._batches.evaluating = not (grad and module.training)
            if recorder.sampled or evaluating:
                self._batches.fields.at_call(row[0], number, inputs, evaluating=evaluating)
        self._detailed = recorder.sampled and grad and not self.compiles
        if self._detailed:
            self._registry.mark_called(number)
            if self._calls_step != recorder.step:
                self._calls_step = recorder.step
                self._calls.clear()
            if recorder.traced and not _has_fused_path(module):
                self._trace.begin([*self._batches.traced_tensors, *((batch, tensor) for tensor in inputs)])
        return row

    def _mode_sensitive_parts(self, module: nn.Module) -> tuple[list[nn.Module], list[nn.Module]]:
        known = self._mode_sensitive.get(module)
        if known is None or self.recorder.sampled:
            parts = list(module.modules())
            known = ([part for part in parts if drops_units(part)], [part for part in parts if uses_batch_statistics(part)])
            self._mode_sensitive[module] = known
        return known  # type: ignore[no-any-return]

    def _source_of(self, inputs: list[Tensor]) -> int | None:
        """The earlier call without gradients whose output goes in, found by the storage that both share."""
        if not self._graphless_outputs:
            return None
        storages = {tensor.untyped_storage()._cdata for tensor in inputs if is_plain(tensor)}
        for seq, reference in reversed(self._graphless_outputs):
            if reference.cdata in storages and not reference.expired():
                return seq
        return None

    @guarded
    def _leave_root(self, module: nn.Module, row: list[Any], output: Any) -> None:
        outputs = tensors_in(output)
        if not row[_GRAD]:
            for tensor in outputs[:2]:
                if is_plain(tensor):
                    self._graphless_outputs.append((row[0], StorageWeakRef(tensor.untyped_storage())))
        elif len(outputs) == 1 and outputs[0].dim() == 0 and next(module.parameters(), None) is None:
            row[_LOSS] = 1
        if not (row[_GRAD] and row[_TRAINING]) and not row[_LOSS] and outputs:
            self._scores.at_output(outputs[0])
        self._last_output = None
        if self.recorder.step == 0:
            # Lazy modules have got their parameters in this call.
            self._registry.refresh(row[_MODULE])

    # Calls inside of a root call, on sampled steps

    def _inner_call(self, module: nn.Module, args: Any, kwargs: Any) -> Any:
        number = self._enter_inner(module)
        if self.recorder.alignment is not None and number is not None:
            self._keep_inputs(number, (args, kwargs))
        if number is None:
            return self._call(module, *args, **kwargs)
        exact = self._exact.before(module, kind_of(module), args, kwargs) if self.recorder.alignment is not None else None
        call = self._calls.get(number, 0)
        try:
            output = self._call(module, *args, **kwargs)
        finally:
            self._trace.leave_module()
        if exact is not None:
            self._exact.after(self._registry.path_of("output", number), call, exact, output)
        self._leave_inner(number, output)
        return output

    @guarded
    def _enter_inner(self, module: nn.Module) -> int | None:
        if get_ident() != self._thread:
            return None
        number = self._registry.module_id(module)
        if number is not None:
            self._registry.mark_called(number)
            self._trace.enter_module(number)
        return number

    @guarded
    def _keep_inputs(self, number: int, given: Any) -> None:
        call = self._calls.get(number, 0)
        if self.recorder.keeps_tensors and call < _MOST_CALLS_PER_STEP:
            with torch._C.DisableTorchFunction(), torch.no_grad():
                self._registry.keep_inputs(number, call, tensors_in(given, most=4))

    @guarded
    def _leave_inner(self, number: int, output: Any) -> None:
        call = self._calls.get(number, 0)
        self._calls[number] = call + 1
        if call >= _MOST_CALLS_PER_STEP:
            return
        for place, tensor in enumerate(tensors_in(output, most=4)):
            if tensor.is_floating_point() and is_plain(tensor):
                self._measure(number, call * 4 + place, tensor)

    def _measure(self, number: int, position: int, tensor: Tensor) -> None:
        recorder = self.recorder
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if self._last_output is not None and self._last_output[0] is tensor:
                row = self._last_output[1]
                row = (row[0], row[1], number, position, *row[4:])
                recorder.row("tensor_stat", row)
            else:
                row = self._registry.stat(recorder.step, "output", number, position, tensor)
            self._last_output = (tensor, row)
        if tensor.requires_grad and tensor.grad_fn is not None:
            step = recorder.step
            arrived = unserializable_hook(lambda gradient: self._gradient_arrived(step, number, position, gradient))
            tensor.register_hook(arrived)

    @guarded
    def _gradient_arrived(self, step: int, number: int, position: int, gradient: Tensor | None) -> None:
        """None comes where the script uses another output of the same operation only, as the last state of an LSTM."""
        if step == self.recorder.step and gradient is not None and is_plain(gradient):
            with torch._C.DisableTorchFunction(), torch.no_grad():
                self._registry.stat(step, "output_grad", number, position, gradient)


def _has_fused_path(module: nn.Module) -> bool:
    """Whether tracing could change which kernel runs: attention in eval mode takes a fused path when nobody watches."""
    return any(
        isinstance(part, nn.MultiheadAttention | nn.TransformerEncoderLayer) and not part.training for part in module.modules()
    )


def _without_dropout(attention: Any) -> Any:
    signature = inspect.signature(_attention_arguments)

    def without(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["dropout_p"] = 0.0
        return attention(*bound.args, **bound.kwargs)

    return without


def _attention_arguments(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: Any = 0.0, is_causal: Any = None, **more: Any
) -> None:
    """The arguments of torch's attention, which is no python function and has no signature."""
