"""Calls of MindSpore's loss functions and loss cells, and what went into them."""

from __future__ import annotations

import inspect
import math
from time import perf_counter
from typing import Any

import numpy as np
from mindspore import Tensor, mint, nn, ops
from numpy.typing import NDArray

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.data import BatchWatch
from trueline.adapters.mindspore.graph import OpTrace
from trueline.adapters.mindspore.kinds import settings_of
from trueline.adapters.mindspore.scores import ScoreWatch
from trueline.adapters.mindspore.tensors import array_of, dtype_name, tensors_in
from trueline.adapters.shared.margins import SCORED
from trueline.model import MOST_LOSS_CALLS
from trueline.recorder import Recorder, to_json
from trueline.recorder.alignment import Alignment
from trueline.recorder.patches import Patches

FUNCTIONS = (
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "kl_div", "ctc_loss", "cosine_embedding_loss", "hinge_embedding_loss",
    "margin_ranking_loss", "triplet_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "soft_margin_loss", "gaussian_nll_loss",
)  # fmt: skip
LOSS_CELLS = {
    "CrossEntropyLoss": "cross_entropy", "SoftmaxCrossEntropyWithLogits": "cross_entropy", "NLLLoss": "nll_loss",
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "MSELoss": "mse_loss",
    "RMSELoss": "rmse_loss", "L1Loss": "l1_loss", "L1LossExt": "l1_loss", "MAELoss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss", "KLDivLoss": "kl_div", "CTCLoss": "ctc_loss", "SoftMarginLoss": "soft_margin_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss", "MultiMarginLoss": "multi_margin_loss", "FocalLoss": "focal_loss",
    "HingeEmbeddingLoss": "hinge_embedding_loss", "TripletMarginLoss": "triplet_margin_loss",
    "PoissonNLLLoss": "poisson_nll_loss",
    "GaussianNLLLoss": "gaussian_nll_loss", "MarginRankingLoss": "margin_ranking_loss", "DiceLoss": "dice_loss",
    "MultiLabelSoftMarginLoss": "multilabel_soft_margin_loss", "MultilabelMarginLoss": "multilabel_margin_loss",
}  # fmt: skip
_CLASS_AXIS = {"cross_entropy", "nll_loss", "kl_div"}
_INPUTS = ("input", "logits", "inputs", "x", "input1", "log_probs", "anchor", "x1")
_TARGETS = ("target", "label", "labels", "targets", "input2", "positive", "x2")
_MOST_DISTINCT = 1000


class LossWatch(Watch):
    """Watches loss cells of `nn`, and the loss functions of `ops` and `mint` that the script calls itself."""

    def __init__(self, recorder: Recorder, batches: BatchWatch, trace: OpTrace, scores: ScoreWatch) -> None:
        super().__init__(recorder)
        self._batches = batches
        self._trace = trace
        self._scores = scores
        self._inside = False
        self._step = -1
        self._count = 0
        self._kinds: dict[type, str | None] = {}

    def install_visible(self, patches: Patches) -> None:
        for owner in (ops, mint.nn.functional):
            for name in FUNCTIONS:
                if hasattr(owner, name):
                    patches.replace(owner, name, self._watched(name, getattr(owner, name)))

    def is_loss(self, cell: nn.Cell) -> bool:
        return self._kind(type(cell)) is not None

    def _kind(self, cell_type: type) -> str | None:
        if cell_type not in self._kinds:
            own = cell_type.__module__.startswith("mindspore.")
            self._kinds[cell_type] = LOSS_CELLS.get(cell_type.__name__) if own else None
        return self._kinds[cell_type]

    def cell_called(self, cell: nn.Cell, original: Any, args: Any, kwargs: Any) -> Any:
        if self._inside:
            return original(cell, *args, **kwargs)
        if self.recorder.alignment is not None:
            args, kwargs = self._aligned(self.recorder.alignment, args, kwargs)
        value = self._alone(original, (cell, *args), kwargs)
        arguments = dict(enumerate(args)) | kwargs
        given, target = [*arguments.values(), None, None][:2]
        self._happened(self._kind(type(cell)) or "", given, target, value, lambda: _settings_of_cell(cell))
        return value

    def _watched(self, kind: str, original: Any) -> Any:
        try:
            signature = inspect.signature(original)
        except (TypeError, ValueError):
            signature = None

        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.recorder.active:
                return original(*args, **kwargs)
            if self.recorder.alignment is not None:
                args, kwargs = self._aligned(self.recorder.alignment, args, kwargs)
            value = self._alone(original, args, kwargs)
            given = args[0] if args else next((kwargs[name] for name in _INPUTS if name in kwargs), None)
            target = args[1] if len(args) > 1 else next((kwargs[name] for name in _TARGETS if name in kwargs), None)
            self._happened(kind, given, target, value, lambda: _settings_of_call(signature, args, kwargs))
            return value

        return watched

    def _aligned(self, alignment: Alignment, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments with the targets of the run that this one is aligned to."""
        if self._batches.evaluating:
            return args, kwargs
        if len(args) > 1:
            new = self._batches.aligned_target(alignment, args[1])
            return (args if new is None else (args[0], new, *args[2:])), kwargs
        name = next((name for name in _TARGETS if name in kwargs), None)
        new = None if name is None else self._batches.aligned_target(alignment, kwargs[name])
        return args, (kwargs if new is None else {**kwargs, str(name): new})

    def _alone(self, original: Any, args: Any, kwargs: Any) -> Any:
        """Call it as one operation: what it is made of is not the script's."""
        self._inside = True
        self._trace.paused += 1
        try:
            return original(*args, **kwargs)
        finally:
            self._trace.paused -= 1
            self._inside = False

    def _happened(self, kind: str, given: Any, target: Any, value: Any, settings: Any) -> None:
        evaluating = self._batches.evaluating
        if self.recorder.sampled or self._batches.lacks_targets:
            self._called(kind, given, target, value, settings, evaluating)
        if kind in SCORED and perf_counter() >= self._scores.due:
            self._scores.at_loss(kind, given, target, training=not evaluating)
        if evaluating:
            self.evaluated(value)

    @guarded
    def evaluated(self, value: Any) -> None:
        """A loss was computed in evaluation."""
        if isinstance(value, Tensor) and math.prod(value.shape) == 1:
            current = self._batches.current
            batch = None if current is None else current.seq
            self.recorder.event("eval_loss", subject=batch, value=float(value), location=self.recorder.location())

    @guarded
    def _called(self, kind: str, given: Any, target: Any, value: Any, settings: Any, evaluating: bool) -> None:  # noqa: FBT001
        if isinstance(target, Tensor):
            self._batches.note_targets(target)
        recorder = self.recorder
        if not recorder.sampled or evaluating:
            return
        if self._step != recorder.step:
            self._step, self._count = recorder.step, 0
        self._count += 1
        if self._count > MOST_LOSS_CALLS:
            return
        told = settings()
        outputs = tensors_in(value)
        recorder.row(
            "loss_call",
            (
                recorder.next_seq(), recorder.step, kind, recorder.location(), 1,
                float(outputs[0]) if outputs and math.prod(outputs[0].shape) == 1 else None,
                to_json(self._described(given, rows=kind in _CLASS_AXIS)), to_json(self._described(target, distinct=True)),
                to_json(told),
            ),
        )  # fmt: skip
        if self._trace.is_on:
            taken = [tensor for tensor in (given, target) if isinstance(tensor, Tensor)]
            self._trace.add(kind, taken, outputs, {"reduction": told.get("reduction")})

    @guarded
    def inside_of_graph(self, cell: nn.Cell, target: Any, value: float) -> None:
        """A compiled step ends in this loss. What went into it is not seen, but for targets that are handed to the step."""
        recorder = self.recorder
        told = {"shape": list(target.shape), "dtype": dtype_name(target)} if isinstance(target, Tensor) else {}
        recorder.row(
            "loss_call",
            (
                recorder.next_seq(), recorder.step, self._kind(type(cell)), recorder.location(), 1, value, to_json({}),
                to_json(told), to_json(_settings_of_cell(cell)),
            ),
        )  # fmt: skip

    def _described(self, tensor: Any, *, rows: bool = False, distinct: bool = False) -> dict[str, Any]:
        if not isinstance(tensor, Tensor):
            return {}
        traced = self._trace.is_on
        described: dict[str, Any] = {
            "shape": list(tensor.shape),
            "dtype": dtype_name(tensor),
            # Without a trace it is not known; predictions are the floating-point ones that targets are compared with.
            "requires_grad": self._trace.needs_gradient(tensor) if traced else not distinct,
            "op": self._trace.origin(tensor),
        }
        values = array_of(tensor)
        if values.size == 0 or values.dtype.kind not in "iubf":
            return described
        values = values.astype(np.float64)
        # Infinite values are the script's, and so would be a warning about them.
        with np.errstate(all="ignore"):
            described["min"], described["max"] = _range(values)
            if rows and values.ndim >= 2:
                described["row_sum"] = _range(values.sum(axis=1))
                described["row_logsumexp"] = _range(_logsumexp(values))
        if distinct:
            described["distinct"] = min(len(np.unique(values)), _MOST_DISTINCT)
        return described


def _range(values: NDArray[Any]) -> list[float]:
    return [float(values.min()), float(values.max())]


def _logsumexp(values: NDArray[Any]) -> NDArray[Any]:
    top = values.max(axis=1)
    found: NDArray[Any] = top + np.log(np.exp(values - np.expand_dims(top, 1)).sum(axis=1))
    return found


def _settings_of_cell(cell: nn.Cell) -> dict[str, Any]:
    settings = settings_of(cell)
    if isinstance(cell, nn.LossBase) and not isinstance(settings.get("reduction"), str):
        settings["reduction"] = "none" if not cell.reduce else "mean" if cell.average else "sum"
    weight = getattr(cell, "weight", None)
    if isinstance(weight, Tensor):
        settings["weight"] = f"tensor{tuple(weight.shape)}"
    return settings


def _settings_of_call(signature: inspect.Signature | None, args: Any, kwargs: Any) -> dict[str, Any]:
    if signature is None:
        return {"reduction": kwargs.get("reduction", "mean")}
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return {
        name: (f"tensor{tuple(argument.shape)}" if isinstance(argument, Tensor) else argument)
        for name, argument in bound.arguments.items()
        if name not in (*_INPUTS, *_TARGETS)
    }
