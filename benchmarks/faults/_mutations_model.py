"""Faults of the model: its initial and loaded weights, its connections, its modes."""

from __future__ import annotations

import ast
from typing import TypeGuard

from benchmarks.faults._idioms import (
    ACTIVATIONS,
    LAYERS,
    calls_within,
    forward_of,
    method_statements,
    model_body,
    model_calls,
    model_made,
    optimizer_made,
)
from benchmarks.faults._mutation import Planting, mutation
from benchmarks.faults._source import Edit, Source, keyword, last_name

NORMS = ("LayerNorm", "BatchNorm1d", "BatchNorm2d")


def _initialised(source: Source, call: str, which: str = "") -> list[Planting]:
    made, optimizer = model_made(source), optimizer_made(source)
    # Weights that are loaded afterwards would undo it.
    if made is None or optimizer is None or source.calls("load_state_dict"):
        return []
    text = f"[torch.nn.init.{call} for p in {optimizer.model}.parameters(){which}]"
    return [Planting([source.append(made, text)], (made.end_lineno or made.lineno,))]


# Random biases would make the units different again, so biases get the constant too; scales of norms are not meant.


@mutation("wi.01", "all weights zero")
def zero_weights(source: Source) -> list[Planting]:
    return [] if source.calls(*NORMS) else _initialised(source, "zeros_(p)")


@mutation("wi.01", "all weights one constant")
def constant_weights(source: Source) -> list[Planting]:
    # Dropout and noise break the symmetry, and the gates of recurrent layers hide it.
    if source.calls(*NORMS, "Dropout", "LSTM", "GRU", "randn_like", "Embedding"):
        return []
    return _initialised(source, "constant_(p, 0.05)")


@mutation("wi.01", "weights far too large")
def large_weights(source: Source) -> list[Planting]:
    if source.calls(*NORMS, "LSTM", "GRU") or not source.calls("CrossEntropyLoss"):
        return []
    return _initialised(source, "normal_(p, std=3.0)", " if p.dim() > 1")


@mutation("cg.01", "one layer object in several places")
def layers_multiplied(source: Source) -> list[Planting]:
    found = []
    for node in source.nodes:
        if not isinstance(node, ast.ListComp) or not isinstance(node.elt, ast.Call) or len(node.generators) != 1:
            continue
        over = node.generators[0].iter
        owner = source.parents[node]
        owner = source.parents[owner] if isinstance(owner, ast.Starred) else owner
        if not isinstance(owner, ast.Call) or last_name(owner.func) not in ("Sequential", "ModuleList"):
            continue
        if isinstance(over, ast.Call) and last_name(over.func) == "range" and len(over.args) == 1:
            text = f"[{source.text_of(node.elt)}] * {source.text_of(over.args[0])}"
            found.append(Planting([source.replace(node, text)], (node.lineno,)))
    return found


@mutation("cg.02", "output layer frozen")
def head_frozen(source: Source) -> list[Planting]:
    body = model_body(source)
    layers = calls_within(body, *LAYERS) if body is not None else []
    if len(layers) < 2:
        return []
    end = source.span(layers[-1])[1]
    return [Planting([Edit(end, end, ".requires_grad_(False)")], (layers[-1].lineno,))]


@mutation("cg.02", "detached on the way to the loss")
def detached(source: Source) -> list[Planting]:
    forward = forward_of(source)
    found = []
    for statement in forward.body[:-1] if forward is not None else []:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        if isinstance(statement.targets[0], ast.Name) and "self." in source.text_of(statement.value.func) + "".join(
            source.text_of(argument) for argument in statement.value.args
        ):
            found.append(Planting(source.wrap(statement.value, "", ".detach()"), (statement.lineno,)))
    return found


def _activated_linears(source: Source) -> list[tuple[ast.Assign, ast.Call, ast.Call]]:
    """`x = relu(self.fc(x))` in the model's forward, with `fc` a linear layer: statement, activation, what it is applied to."""
    forward, body = forward_of(source), model_body(source)
    if forward is None or body is None:
        return []
    linear = {
        target.attr
        for node in ast.walk(body)
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute)
        if isinstance(node.value, ast.Call) and last_name(node.value.func) == "Linear"
    }
    found = []
    for statement in forward.body[:-1]:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call) or not statement.value.args:
            continue
        inner = statement.value.args[0]
        if last_name(statement.value.func) in ACTIVATIONS and isinstance(inner, ast.Call) and last_name(inner.func) in linear:
            found.append((statement, statement.value, inner))
    return found


@mutation("cg.03", "activation left out of the forward pass")
def activation_removed(source: Source) -> list[Planting]:
    # The first or the second of the two linear layers that now follow each other may be named.
    return [
        Planting([source.replace(activation, source.text_of(inner))], (statement.lineno, _next_layer(source, statement)))
        for statement, activation, inner in _activated_linears(source)
    ]


def _next_layer(source: Source, statement: ast.stmt) -> int:
    """The line of the next statement that calls a layer of the model."""
    body = getattr(source.parents[statement], "body", [])
    later = [each for each in body[body.index(statement) + 1 :] if calls_of_self(each)]
    return later[0].lineno if later else statement.lineno


def calls_of_self(node: ast.AST) -> list[ast.Call]:
    return [
        each
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and isinstance(each.func.value, ast.Name)
        if each.func.value.id == "self"
    ]


@mutation("cg.03", "activation called, its result dropped")
def activation_dropped(source: Source) -> list[Planting]:
    found = []
    for statement, activation, inner in _activated_linears(source):
        target, end = source.text_of(statement.targets[0]), source.span(statement)[1]
        dropped = Edit(end, end, f"\n{source.indentation_of(statement)}{source.text_of(activation.func)}({target})")
        edits = [source.replace(activation, source.text_of(inner)), dropped]
        found.append(Planting(edits, (statement.lineno + 1,), added=1))
    return found


@mutation("cg.03", "activation left out of a Sequential")
def activation_not_listed(source: Source) -> list[Planting]:
    body = model_body(source)
    found = []
    for sequential in calls_within(body, "Sequential") if body is not None else []:
        names = [last_name(layer.func) if isinstance(layer, ast.Call) else None for layer in sequential.args]
        for place in range(1, len(names) - 1):
            if names[place - 1 : place + 2] == ["Linear", "ReLU", "Linear"]:
                before, layer, after = sequential.args[place - 1 : place + 2]
                edit = Edit(*source.span(layer), "")
                comma = Edit(edit.end, source.data.index(b",", edit.end) + 1, "")
                found.append(Planting([edit, comma], (before.lineno, after.lineno)))
    return found


@mutation("cg.03", "a layer that is never called")
def layer_not_called(source: Source) -> list[Planting]:
    forward, body = forward_of(source), model_body(source)
    found = []
    for statement in forward.body[:-1] if forward is not None and body is not None else []:
        if not isinstance(statement, ast.Assign) or not isinstance(call := statement.value, ast.Call) or len(call.args) != 1:
            continue
        given, taken = source.text_of(call.args[0]), source.text_of(statement.targets[0])
        made = [node for node in ast.walk(body or statement) if _makes(node, call.func)]
        if given == taken and call.func in [each.func for each in calls_of_self(statement)] and made:
            found.append(Planting([source.remove(statement)], (made[0].lineno, statement.lineno)))
    return found


def _makes(node: ast.AST, layer: ast.expr) -> TypeGuard[ast.Assign]:
    """Whether this is the assignment of `self.layer`, of something that has parameters."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute) or not isinstance(layer, ast.Attribute):
        return False
    return node.targets[0].attr == layer.attr and not calls_within(node.value, "Dropout")


@mutation("tr.05", "units that never fire")
def units_silenced(source: Source) -> list[Planting]:
    body = model_body(source)
    found = []
    for _, activation, inner in _activated_linears(source):
        if last_name(activation.func) != "relu" or not isinstance(inner.func, ast.Attribute):
            continue
        for node in ast.walk(body) if body is not None else []:
            if _makes(node, inner.func):
                text = f"torch.nn.init.constant_(self.{inner.func.attr}.bias, -20.0)"
                found.append(Planting([source.append(node, text)], (node.lineno,)))
    return found


@mutation("dp.04", "last state of a recurrent layer read from the padding")
def padding_read(source: Source) -> list[Planting]:
    found = []
    for call in source.calls("pack_padded_sequence"):
        body = getattr(source.parents[source.statement_of(call)], "body", [])
        place = body.index(source.statement_of(call))
        # The recurrent layer is called next, and its state is read after that: either may be named.
        lines = tuple(statement.lineno for statement in body[place + 1 : place + 3])
        found.append(Planting([source.replace(call, source.text_of(call.args[0]))], lines))
    return found


@mutation("api.01", "BatchNorm with the momentum of another framework")
def other_momentum(source: Source) -> list[Planting]:
    norms = [call for call in source.calls(*NORMS[1:]) if keyword(call, "momentum") is None]
    if not norms:
        return []
    edits = [Edit(source.span(call)[1] - 1, source.span(call)[1] - 1, ", momentum=0.9") for call in norms]
    return [Planting(edits, tuple(call.lineno for call in norms))]


@mutation("api.02", "eval() forgotten")
def eval_forgotten(source: Source) -> list[Planting]:
    made = optimizer_made(source)
    if made is None or not source.calls("Dropout", *NORMS[1:]):
        return []
    switches = method_statements(source, made.model, "eval")
    calls = model_calls(source, training=False)
    if not switches or not calls:
        return []
    return [Planting([source.remove(statement) for statement, _ in switches], tuple(call.lineno for call in calls))]


@mutation("api.02", "train() forgotten after an evaluation")
def train_forgotten(source: Source) -> list[Planting]:
    made = optimizer_made(source)
    if made is None or not source.calls("Dropout", *NORMS[1:]):
        return []
    back, switches = method_statements(source, made.model, "train"), method_statements(source, made.model, "eval")
    if not back or not switches:
        return []
    return [Planting([source.remove(statement) for statement, _ in back], tuple(call.lineno for _, call in switches))]


@mutation("wi.02", "loaded under other names, strict=False")
def other_names_loaded(source: Source) -> list[Planting]:
    found = []
    for call in source.calls("load_state_dict"):
        weights = source.text_of(call.args[0])
        text = f'{{"module." + key: value for key, value in {weights}.items()}}, strict=False'
        found.append(Planting([source.replace(call.args[0], text)], (call.lineno,)))
    return found


@mutation("wi.02", "initialised again after loading")
def initialised_after_load(source: Source) -> list[Planting]:
    found = []
    for call in source.calls("load_state_dict"):
        if isinstance(call.func, ast.Attribute):
            again = (
                f'[m.reset_parameters() for m in {source.text_of(call.func.value)}.modules() if hasattr(m, "reset_parameters")]'
            )
            found.append(Planting([source.append(source.statement_of(call), again)], (call.lineno,)))
    return found
