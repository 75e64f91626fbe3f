"""Layers that a model holds and never calls, where the place that they were built for can be told."""

from __future__ import annotations

from collections import Counter

from trueline.model import Evidence, Module, Parameter
from trueline.views.dataflow import Trace, is_within, parent_of
from trueline.views.loss_patterns import Fault
from trueline.views.parameters import ParameterHistory, listed
from trueline.views.words import words_of

FIT_ANYWHERE = frozenset({"batch_norm", "layer_norm", "norm"})
LEAVES = frozenset({"linear", "conv", "embedding", "recurrent", "attention"})
FEWEST_STEPS = 2


def uncalled_layer(history: ParameterHistory, trace: Trace) -> Fault | None:
    """A layer of the trained model that no step used, built on a line of its own, that would fit into the network."""
    run = history.run
    found = [
        (module, why)
        for module in run.modules.values()
        if module.path and module.root in history.trained_roots and (why := _why_missed(history, trace, module)) is not None
    ]
    # Only the outermost of nested ones is told.
    found = [
        (m, why) for m, why in found if not any(o is not m and o.root == m.root and is_within(m.path, o.path) for o, _ in found)
    ]
    if not found:
        return None
    module, why = found[0]
    weights = _parameters(history, module)
    steps = max(place.steps for weight in weights for place in history.held[weight.id])
    where = None if module.built is None else module.built.of_module(module.name)
    many = len(found) > 1
    return Fault(
        f"{listed(m.name for m, _ in found)} {'are' if many else 'is'} built and trained by the optimizer, but the forward pass "
        f"never calls {'them' if many else 'it'}: {why}.",
        0.85,
        [
            Evidence(
                f"{module.name} ({module.type}): in {steps} optimizer steps none of its {len(weights)} parameters had a "
                "gradient, and no call of it was seen.",
                {"steps": steps, "parameters": [weight.name for weight in weights[:8]]},
                location=where,
            )
        ],
        where,
        f"Call {module.name} in {words_of(run).forward} where it belongs, or remove it.",
    )


def _parameters(history: ParameterHistory, module: Module) -> list[Parameter]:
    run = history.run
    return [
        weight
        for weight in history.weights
        if weight.root == module.root and is_within(run.modules[weight.module].path, module.path)
    ]


def _why_missed(history: ParameterHistory, trace: Trace, module: Module) -> str | None:
    """What shows that the layer was meant to be called; None when it was, or when it may be for another occasion."""
    run = history.run
    if module.called is not None or module.same_as is not None or module.built is None:
        return None
    parent = parent_of(run, module.id)
    if parent is None or run.modules[parent].type == "ModuleDict" or run.modules[parent].built == module.built:
        # Several heads by name are chosen from; what a ready-made model contains was not written here.
        return None
    weights = _parameters(history, module)
    if not weights or not all(_never_had_gradient(history, weight) for weight in weights):
        return None
    siblings = [
        other
        for other in run.modules.values()
        if other.root == module.root and other.id != module.id and parent_of(run, other.id) == parent and other.called is not None
    ]
    if not siblings:
        return None
    return _place_of(history, trace, module, siblings)


def _never_had_gradient(history: ParameterHistory, weight: Parameter) -> bool:
    places = history.held.get(weight.id, [])
    return (
        weight.loaded is None
        and history.always_trainable(weight)
        and history.never_moved(weight)
        and bool(places)
        and all(place.steps >= FEWEST_STEPS and place.without_gradient == place.steps for place in places)
    )


def _shapes(history: ParameterHistory, module: Module) -> list[tuple[int, ...]]:
    return [weight.shape for weight in _parameters(history, module)]


def _place_of(history: ParameterHistory, trace: Trace, module: Module, siblings: list[Module]) -> str | None:
    alike = [other for other in siblings if other.type == module.type and _shapes(history, other) == _shapes(history, module)]
    twice = [other for other in alike if _calls_per_pass(history, trace, other) > 1]
    if twice:
        return f"{twice[0].name}, which is built alike, is called {_calls_per_pass(history, trace, twice[0])} times instead"
    if module.kind in FIT_ANYWHERE:
        widths = {other.settings.get("out_features") or other.settings.get("out_channels") for other in siblings}
        width = module.settings.get("num_features") or (_shapes(history, module) or [(0,)])[0][0]
        return "the layers beside it give what it normalises" if width in widths else None
    matrices = _matrices(history, [module])
    shape = matrices[0] if matrices else None
    if module.kind in LEAVES | {"container"} and _goes_around(history, module, siblings):
        block = _name_around(history, module)
        return f"it takes what {block} takes and gives what {block} gives, and nothing goes around the layers there"
    if module.kind not in LEAVES and matrices and matrices[0][1] == matrices[-1][0] and _joins(siblings, matrices[-1][0]):
        return f"it takes and gives {matrices[-1][0]} features, and its neighbours are connected without it"
    if shape is None or module.kind not in LEAVES:
        container = _type_around(history, module)
        return "others of its kind in the same list are called" if alike and container == "ModuleList" else None
    if module.kind == "embedding":
        widths = {other.settings.get("embedding_dim") for other in siblings if other.kind == "embedding"}
        return "it has the width of the embedding beside it" if module.settings.get("embedding_dim") in widths else None
    if module.kind in ("linear", "conv") and shape[0] == shape[1] and _joins(siblings, shape[0]):
        return f"it takes and gives {shape[0]} features, and its neighbours are connected without it"
    return None


def _matrices(history: ParameterHistory, modules: list[Module]) -> list[tuple[int, ...]]:
    """The shapes of their weights that have an input and an output, in the order in which they were built."""
    return [weight.shape for module in modules for weight in _parameters(history, module) if len(weight.shape) > 1]


def _goes_around(history: ParameterHistory, module: Module, siblings: list[Module]) -> bool:
    """Whether it leads from the input of the block that it is part of to the output, as a shortcut does."""
    parent = parent_of(history.run, module.id)
    if parent is None or not history.run.modules[parent].path or history.run.modules[parent].kind == "container":
        return False
    own, block = _matrices(history, [module]), _matrices(history, sorted(siblings, key=lambda other: other.id))
    return len(own) == 1 and len(block) > 1 and own[0][1] == block[0][1] != own[0][0] == block[-1][0]


def _name_around(history: ParameterHistory, module: Module) -> str:
    """The name of the module around this one."""
    parent = parent_of(history.run, module.id)
    return "the model" if parent is None else history.run.modules[parent].name


def _type_around(history: ParameterHistory, module: Module) -> str | None:
    """The class of the module around this one."""
    parent = parent_of(history.run, module.id)
    return None if parent is None else history.run.modules[parent].type


def _joins(siblings: list[Module], width: int) -> bool:
    """Whether one neighbour gives, and another takes, as many features as the layer has."""
    gives = {other.settings.get("out_features") or other.settings.get("out_channels") for other in siblings}
    takes = {other.settings.get("in_features") or other.settings.get("in_channels") for other in siblings}
    return width in gives and width in takes


def _calls_per_pass(history: ParameterHistory, trace: Trace, module: Module) -> int:
    """How often the first matrix of a module is used in one traced step."""
    first = next((weight for weight in _parameters(history, module) if len(weight.shape) > 1), None)
    if first is None:
        return 0
    steps = Counter(op.step for op in trace.users_of_parameter.get(first.id, []) if op.module is not None)
    roots = Counter(call.step for call in history.run.root_calls if call.module == module.root and call.grad)
    return max((count // max(roots.get(step, 1), 1) for step, count in steps.items()), default=0)
