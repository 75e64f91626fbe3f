"""What is wrong between the model's output and a loss function of the framework, by its values: one function per pattern.

Each takes the trace and one loss call that belongs to training, and returns a `Fault` or None.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from trueline.model import Evidence, Location, LossCall, Op
from trueline.views.dataflow import ELEMENTWISE, REDUCTIONS, SHAPE_ONLY, Trace, is_in, line_of, plain, shape_of
from trueline.views.words import either, words_of

JOINS = frozenset({"cat", "concat", "concatenate", "stack"})
LOG_LIKE = frozenset({"log", "log_softmax", "logsigmoid", "log_sigmoid", "log1p", "logsumexp", "xlogy"})
UNBOUNDED = frozenset(
    """
    linear addmm matmul mm bmm bilinear conv1d conv2d conv3d convolution batch_norm layer_norm group_norm relu leaky_relu gelu
    """.split()
)
ASYMMETRIC = frozenset({"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"})
# A log-probability is never above 0, and the exponentials of a row sum to 1 (so that their log-sum-exp is 0). These leave
# room for rounding in float16, and for log(p + eps).
LOG_ROUNDING = 0.05
LOSS_NAMES = {
    "cross_entropy": "cross-entropy",
    "nll_loss": "NLL loss",
    "binary_cross_entropy": "binary cross-entropy",
    "binary_cross_entropy_with_logits": "binary cross-entropy with logits",
    "kl_div": "KL divergence",
    "mse_loss": "MSE loss",
    "l1_loss": "L1 loss",
}


class Fault(msgspec.Struct, frozen=True):
    summary: str
    confidence: float
    evidence: list[Evidence]
    location: Location | None
    fix: str


def loss_name(loss: LossCall) -> str:
    return LOSS_NAMES.get(loss.kind, loss.kind)


def _sum_tolerance(loss: LossCall) -> float:
    """How far a row of probabilities may be from summing to 1: rounding of half precision values, else of float32 ones."""
    return 0.02 if loss.input.get("dtype") in ("float16", "bfloat16") else 1e-3


def _holds_probabilities(loss: LossCall) -> bool:
    """Whether every row of the input lies in [0, 1] and sums to 1."""
    rows, low = loss.input.get("row_sum"), loss.input.get("min")
    if not rows or low is None or rows[0] is None or rows[1] is None:
        return False
    several_classes = len(loss.input.get("shape") or ()) >= 2 and loss.input["shape"][1] >= 2
    tolerance = _sum_tolerance(loss)
    return bool(several_classes and low >= 0 and abs(rows[0] - 1) <= tolerance and abs(rows[1] - 1) <= tolerance)


def values_of(loss: LossCall) -> Evidence:
    told_of = ("shape", "min", "max", "row_sum", "row_logsumexp")
    numbers: dict[str, Any] = {key: loss.input[key] for key in told_of if key in loss.input}
    told = f"The input of the {loss_name(loss)} (shape {list(loss.input.get('shape') or [])})"
    if loss.input.get("min") is not None and loss.input.get("max") is not None:
        told += f" lies between {loss.input['min']:.4g} and {loss.input['max']:.4g}"
    rows = loss.input.get("row_sum")
    if rows and rows[0] is not None and rows[1] is not None:
        told += f"; its rows sum to {rows[0]:.6g} … {rows[1]:.6g}"
    return Evidence(told + ".", numbers, loss.step, loss.location)


def made_by(trace: Trace, op: Op, what: str) -> Evidence:
    return Evidence(what, {"operation": plain(op.name), "shape": list(shape_of(op))}, op.step, line_of(trace.run, op))


def _behind(trace: Trace, loss: LossCall) -> Op | None:
    """The operation that made the values of the input, before any change of shape or type."""
    return trace.back_through(trace.producer(loss.input.get("op")), SHAPE_ONLY)


def softmax_before_own_softmax(trace: Trace, loss: LossCall) -> Fault | None:
    if loss.kind != "cross_entropy":
        return None
    op = _behind(trace, loss)
    name = plain(op.name) if op is not None else ""
    if op is not None and name in ("softmax", "log_softmax"):
        log = name == "log_softmax"
        where = line_of(trace.run, op)
        effect = (
            "Applied twice, log-softmax changes nothing in the values, so the loss is right by luck: NLL loss was "
            "meant, or raw scores."
            if log
            else "The loss then takes the probabilities for scores: it can never fall below "
            f"{_floor(loss):.3g}, and its gradients are squeezed."
        )
        return Fault(
            f"{'Log-softmax' if log else 'Softmax'} is applied before cross-entropy, which applies its own. {effect}",
            0.6 if log else 0.98,
            [made_by(trace, op, f"A {name.replace('_', '-')} makes the input of the loss."), values_of(loss)],
            where,
            f"Give cross_entropy the raw scores: remove the {name.replace('_', '-')} at {where}"
            + (", or replace cross_entropy by nll_loss." if log else " (apply softmax only where probabilities are read)."),
        )
    if op is None and _holds_probabilities(loss):
        return Fault(
            "Cross-entropy is given probabilities: every row lies in [0, 1] and sums to 1. It applies its own softmax "
            "to them, so the "
            f"loss can never fall below {_floor(loss):.3g}.",
            0.9,
            [values_of(loss)],
            loss.location,
            "Give cross_entropy the raw scores of the last layer, without softmax.",
        )
    return None


def _floor(loss: LossCall) -> float:
    """The smallest cross-entropy that probabilities as scores allow: one class at 1, the others at 0."""
    classes = (loss.input.get("shape") or (1, 2))[1] if len(loss.input.get("shape") or ()) > 1 else 2
    return math.log(1 + (classes - 1) * math.exp(-1))


def sigmoid_before_logits(trace: Trace, loss: LossCall) -> Fault | None:
    if loss.kind != "binary_cross_entropy_with_logits":
        return None
    op = _behind(trace, loss)
    if op is None or plain(op.name) not in ("sigmoid", "softmax", "hardsigmoid"):
        return None
    where = line_of(trace.run, op)
    return Fault(
        f"{plain(op.name).capitalize()} is applied before binary cross-entropy with logits, which applies its own "
        "sigmoid: predictions "
        "are confined to [0.5, 0.73], so no sample can be called negative with confidence.",
        0.98,
        [made_by(trace, op, f"A {plain(op.name)} makes the input of the loss."), values_of(loss)],
        where,
        f"Remove the {plain(op.name)} at {where}, or use binary_cross_entropy (BCELoss) on its output.",
    )


def nll_without_log(trace: Trace, loss: LossCall) -> Fault | None:
    if loss.kind != "nll_loss":
        return None
    start = trace.producer(loss.input.get("op"))
    op = trace.back_through(start, SHAPE_ONLY)
    if _holds_probabilities(loss) or (op is not None and plain(op.name) == "softmax"):
        return Fault(
            "NLL loss is given probabilities instead of log-probabilities: its gradient does not grow as the right "
            "class gets less likely.",
            0.98,
            [values_of(loss)]
            + ([made_by(trace, op, "A softmax without a logarithm makes the input of the loss.")] if op else []),
            line_of(trace.run, op) if op is not None and plain(op.name) == "softmax" else loss.location,
            "Use log_softmax instead of softmax before nll_loss, or cross_entropy on the raw scores.",
        )
    if any(is_in(part, LOG_LIKE) for part in trace.region(start, SHAPE_ONLY | ELEMENTWISE | JOINS)):
        return None
    high: float | None = loss.input.get("max")
    rows: list[float] = [row for row in loss.input.get("row_logsumexp") or [] if row is not None]
    impossible = high is not None and high > LOG_ROUNDING
    unnormalised = len(rows) == 2 and max(map(abs, rows)) > 2 * LOG_ROUNDING
    if not (impossible or (start is not None and unnormalised)):
        return None
    return Fault(
        "NLL loss is given raw scores instead of log-probabilities: it can be lowered without end by making all scores larger.",
        0.97,
        [
            values_of(loss),
            Evidence(
                "Log-probabilities are never above 0 and their exponentials sum to 1 in each row (log-sum-exp 0)."
                + (f" Here the log-sum-exp of the rows is {rows[0]:.3g} … {rows[1]:.3g}." if unnormalised else ""),
                {"max": high, "row_logsumexp": rows},
                loss.step,
                loss.location,
            ),
        ],
        loss.location,
        f"Apply log_softmax(scores, {words_of(trace.run).axis}=1) before nll_loss, or use cross_entropy on the raw scores.",
    )


def bce_without_sigmoid(trace: Trace, loss: LossCall) -> Fault | None:
    if loss.kind != "binary_cross_entropy":
        return None
    op = _behind(trace, loss)
    low, high = loss.input.get("min"), loss.input.get("max")
    outside = low is not None and high is not None and (low < 0 or high > 1)
    if not outside and (op is None or not is_in(op, UNBOUNDED)):
        return None
    return Fault(
        "Binary cross-entropy is given values that no sigmoid made probabilities of.",
        0.97 if outside else 0.9,
        [values_of(loss)]
        + ([made_by(trace, op, f"The input comes straight from {plain(op.name)}, whose range is not [0, 1].")] if op else []),
        loss.location,
        "Use binary_cross_entropy_with_logits (BCEWithLogitsLoss) on the raw scores, or apply sigmoid to them first; do "
        "not clamp them.",
    )


def swapped(_trace: Trace, loss: LossCall) -> Fault | None:
    if loss.kind not in ASYMMETRIC or loss.input.get("requires_grad") or not loss.target.get("requires_grad"):
        return None
    return Fault(
        f"Input and target of the {loss_name(loss)} are swapped: the target depends on trainable values and the input does not.",
        0.97,
        [
            Evidence(
                "The first argument needs no gradient; the second one does.",
                {"input_requires_grad": False, "target_requires_grad": True},
                loss.step,
                loss.location,
            )
        ],
        loss.location,
        "Give the prediction first and the target second: loss(prediction, target).",
    )


def kl_without_log(trace: Trace, loss: LossCall) -> Fault | None:
    if loss.kind != "kl_div":
        return None
    op = _behind(trace, loss)
    low, high, log_target = loss.target.get("min"), loss.target.get("max"), bool(loss.settings.get("log_target"))
    by_softmax = op is not None and plain(op.name) == "softmax"
    if _holds_probabilities(loss) or by_softmax:
        where = line_of(trace.run, op) if op is not None and by_softmax else loss.location
        return Fault(
            "KL divergence is given probabilities as its input, which must be log-probabilities.",
            0.98,
            [values_of(loss)],
            where,
            "Use log_softmax for the first argument of kl_div: "
            f"kl_div(log_softmax(scores, {words_of(trace.run).axis}=-1), target, reduction='batchmean').",
        )
    wrong = None
    if low is not None and high is not None and not log_target and low < -LOG_ROUNDING:
        wrong = (
            f"log-probabilities (down to {low:.3g}) as its target"
            + either(trace.run, pytorch=" while log_target is False", mindspore=", which must be probabilities"),
            either(trace.run, pytorch="log_target=True, or convert the target", mindspore="ops.exp of its target"),
        )
    if low is not None and high is not None and log_target and low >= 0 and high > LOG_ROUNDING:
        wrong = (
            f"probabilities (up to {high:.3g}) as its target while log_target is True",
            "log_target=False, or convert the target",
        )
    if wrong is None:
        return None
    return Fault(
        f"KL divergence is given {wrong[0]}.",
        0.95,
        [
            Evidence(
                f"The target lies between {low:.4g} and {high:.4g}.",
                {"min": low, "max": high, "log_target": log_target},
                loss.step,
            )
        ],
        loss.location,
        f"Call kl_div with {wrong[1]}.",
    )


def softmax_of_softmax(trace: Trace, loss: LossCall) -> Fault | None:
    """A softmax on top of another one, on the way into any loss."""
    start = trace.producer(loss.input.get("op"))
    for op in trace.region(start, SHAPE_ONLY | ELEMENTWISE | REDUCTIONS):
        if plain(op.name) not in ("softmax", "log_softmax"):
            continue
        inner = trace.back_through(next(iter(trace.sources(op)), None), SHAPE_ONLY)
        if inner is None or plain(inner.name) != "softmax":
            continue
        where = line_of(trace.run, inner)
        return Fault(
            f"Softmax is applied twice on the way into the {loss_name(loss)}: probabilities are taken for scores.",
            0.95,
            [
                made_by(trace, inner, "The first softmax."),
                made_by(trace, op, f"The second one ({plain(op.name)}) takes its output."),
            ],
            where,
            f"Remove the softmax at {where}.",
        )
    return None
