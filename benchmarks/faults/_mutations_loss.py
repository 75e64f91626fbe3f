"""Faults of the loss."""

from __future__ import annotations

import ast

from benchmarks.faults._idioms import calls_within, forward_of, loss_calls, model_made
from benchmarks.faults._mutation import Planting, mutation
from benchmarks.faults._source import Source, last_name


def _cross_entropies(source: Source) -> list[ast.Call]:
    return loss_calls(source, "CrossEntropyLoss", "cross_entropy")


@mutation("cg.04", "softmax of the scores given to cross-entropy")
def softmax_given(source: Source) -> list[Planting]:
    return [
        Planting(source.wrap(call.args[0], "torch.softmax(", ", dim=-1)"), (call.args[0].lineno,))
        for call in _cross_entropies(source)
    ]


@mutation("cg.04", "softmax at the end of the model")
def softmax_returned(source: Source) -> list[Planting]:
    if not _cross_entropies(source):
        return []
    forward, made = forward_of(source), model_made(source)
    if forward is not None:
        end = forward.body[-1]
        if isinstance(end, ast.Return) and isinstance(end.value, ast.Call):
            return [Planting(source.wrap(end.value, "torch.softmax(", ", dim=-1)"), (end.lineno,))]
        return []
    if made is None or not isinstance(made.value, ast.Call) or last_name(made.value.func) != "Sequential":
        return []
    last = made.value.args[-1]
    return [Planting(source.wrap(last, "", ", nn.Softmax(dim=1)"), (last.lineno,))]


@mutation("cg.04", "NLL of raw scores")
def nll_of_scores(source: Source) -> list[Planting]:
    calls = _cross_entropies(source)
    if len(calls) != 1:
        return []
    call = calls[0]
    if last_name(call.func) == "cross_entropy":
        text = source.text_of(call.func).replace("cross_entropy", "nll_loss")
        return [Planting([source.replace(call.func, text)], (call.lineno,))]
    makers = source.calls("CrossEntropyLoss")
    edits = [source.replace(maker.func, source.text_of(maker.func).replace("CrossEntropyLoss", "NLLLoss")) for maker in makers]
    return [Planting(edits, (call.lineno,))]


@mutation("cg.04", "sigmoid before BCE with logits")
def sigmoid_given(source: Source) -> list[Planting]:
    calls = loss_calls(source, "BCEWithLogitsLoss", "binary_cross_entropy_with_logits")
    return [Planting(source.wrap(call.args[0], "torch.sigmoid(", ")"), (call.args[0].lineno,)) for call in calls[:1]]


@mutation("cg.04", "prediction (N, 1) against target (N)")
def squeeze_removed(source: Source) -> list[Planting]:
    found = []
    for loss in loss_calls(source, "MSELoss", "mse_loss"):
        squeezes = calls_within(loss.args[0], "squeeze")
        forward = forward_of(source)
        if not squeezes and forward is not None:
            squeezes = calls_within(forward, "squeeze")
        if squeezes and isinstance(squeezes[0].func, ast.Attribute):
            found.append(Planting([source.replace(squeezes[0], source.text_of(squeezes[0].func.value))], (loss.lineno,)))
    return found
