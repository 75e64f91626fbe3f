"""Calls of torch's loss functions, functional or through their modules, and what went into them."""

from __future__ import annotations

import inspect
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.data import BatchWatch
from trueline.adapters.pytorch.graph import OpTrace
from trueline.adapters.pytorch.scores import ScoreWatch
from trueline.adapters.pytorch.tensors import dtype_name, is_plain, under_transform
from trueline.adapters.shared.margins import SCORED
from trueline.model import MOST_LOSS_CALLS
from trueline.recorder import Recorder, to_json
from trueline.recorder.alignment import Alignment
from trueline.recorder.patches import Patches

LOSSES = (
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "kl_div", "ctc_loss", "cosine_embedding_loss", "hinge_embedding_loss",
    "margin_ranking_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "poisson_nll_loss", "gaussian_nll_loss",
)  # fmt: skip
_CLASS_AXIS = {"cross_entropy", "nll_loss", "kl_div"}
_INPUTS = ("input", "input1", "log_probs", "anchor")
_TARGETS = ("target", "targets", "input2", "positive")
_MOST_DISTINCT = 1000


class LossWatch(Watch):
    """Watches the loss functions of `torch.nn.functional`; torch's loss modules call those."""

    def __init__(self, recorder: Recorder, batches: BatchWatch, trace: OpTrace, scores: ScoreWatch) -> None:
        super().__init__(recorder)
        self._scores = scores
        self._batches = batches
        self._trace = trace
        self._inside = False
        self._step = -1
        self._count = 0

    def install(self, patches: Patches) -> None:
        for name in LOSSES:
            patches.replace(F, name, self._watched(name, getattr(F, name)))

    def _watched(self, kind: str, original: Any) -> Any:
        signature = inspect.signature(original)
        scored = kind in SCORED

        def watched(*args: Any, **kwargs: Any) -> Any:
            if under_transform() or self._inside or not self.recorder.active:
                return original(*args, **kwargs)
            if self.recorder.alignment is not None and torch.is_grad_enabled():
                self._align(self.recorder.alignment, args[1] if len(args) > 1 else kwargs.get("target"))
            self._inside = True
            try:
                value = original(*args, **kwargs)
            finally:
                self._inside = False
            if self.recorder.sampled or self._batches.lacks_targets:
                self._called(kind, signature, args, kwargs, value)
            evaluating = self._batches.evaluating or not torch.is_grad_enabled()
            if scored and perf_counter() >= self._scores.due:
                given, target = args[:2] if len(args) > 1 else (args[0] if args else kwargs.get("input"), kwargs.get("target"))
                self._scores.at_loss(kind, given, target, training=not evaluating)
            if evaluating:
                self._evaluated(value)
            return value

        return watched

    @guarded
    def _align(self, alignment: Alignment, target: Any) -> None:
        self._batches.align_target(alignment, target)

    @guarded
    def _evaluated(self, value: Any) -> None:
        if isinstance(value, Tensor) and value.numel() == 1 and value.is_cpu:
            current = self._batches.current
            batch = None if current is None else current.seq
            self.recorder.event("eval_loss", subject=batch, value=float(value.detach()), location=self.recorder.location())

    @guarded
    def _called(self, kind: str, signature: inspect.Signature, args: Any, kwargs: Any, value: Any) -> None:
        target = args[1] if len(args) > 1 else kwargs.get("target")
        if isinstance(target, Tensor):
            self._batches.note_targets(target)
        recorder = self.recorder
        if not recorder.sampled or not torch.is_grad_enabled():
            return
        if self._step != recorder.step:
            self._step, self._count = recorder.step, 0
        self._count += 1
        if self._count <= MOST_LOSS_CALLS:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            with torch._C.DisableTorchFunction(), torch.no_grad():
                self._record(kind, bound.arguments, value)

    def _record(self, kind: str, arguments: dict[str, Any], value: Any) -> None:
        recorder = self.recorder
        given = next((arguments[name] for name in _INPUTS if name in arguments), None)
        target = next((arguments[name] for name in _TARGETS if name in arguments), None)
        settings = {
            name: (f"tensor{tuple(argument.shape)}" if isinstance(argument, Tensor) else argument)
            for name, argument in arguments.items()
            if name not in (*_INPUTS, *_TARGETS, "size_average", "reduce")
        }
        single = isinstance(value, Tensor) and value.numel() == 1 and value.device.type == "cpu"
        recorder.row(
            "loss_call",
            (
                recorder.next_seq(), recorder.step, kind, recorder.location(),
                int(isinstance(value, Tensor) and value.requires_grad),
                float(value) if single else None, to_json(self._described(given, rows=kind in _CLASS_AXIS)),
                to_json(self._described(target, distinct=True)), to_json(settings),
            ),
        )  # fmt: skip

    def _described(self, tensor: Any, *, rows: bool = False, distinct: bool = False) -> dict[str, Any]:
        if not isinstance(tensor, Tensor):
            return {}
        described: dict[str, Any] = {
            "shape": list(tensor.shape),
            "dtype": dtype_name(tensor),
            "requires_grad": tensor.requires_grad,
            "op": self._trace.origin(tensor),
        }
        if not is_plain(tensor) or tensor.numel() == 0 or tensor.is_complex():
            return described
        values = tensor.detach().double()
        described["min"], described["max"] = map(float, torch.aminmax(values))
        if rows and tensor.dim() >= 2:
            described["row_sum"] = list(map(float, torch.aminmax(values.sum(1))))
            described["row_logsumexp"] = list(map(float, torch.aminmax(values.logsumexp(1))))
        if distinct:
            described["distinct"] = min(int(torch.unique(values).numel()), _MOST_DISTINCT)
        return described
