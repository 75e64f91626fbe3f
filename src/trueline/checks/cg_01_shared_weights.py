"""Weights wrongly shared, or not shared

## What it checks
Whether layers that were meant to be different are one and the same (`[layer] * n`), whether separate layers stay copies of
each other all the time, and whether an embedding and an output layer that start as copies, as tied weights do, drift apart.

## Why it hurts accuracy
A stack whose members are one object has the capacity of one layer, whatever its depth says. Copies that get the same gradient
at every step are no better: an ensemble of them is one model. Tied weights that are not tied any more give up what
tying is for: each half sees only its own part of the training signal.

## Method
The recorder knows every module and parameter by identity, and a digest of its content before the first step, at sampled
steps, and at the end.

- *One object in several places*: a module with weights stands at two or more places whose names differ only in numbers
  (`layers.0`, `layers.1`; `conv1`, `conv2`), with nothing but containers in between (a BatchNorm: also in numbered blocks),
  and in the traced forward pass one use of it feeds the next, or several uses take the same input; or it stands beside
  itself under names of its own (the heads of a ModuleDict) and several uses take the same input. Uses on different inputs
  (siamese towers, shared heads) are left alone, as are embeddings, modules without weights, and one attribute that is used
  again and again in a loop.
- *Copies that stay copies*: separate weights of one model with equal random content before the first step and, although they
  had gradients and changed, still equal at the end.
- *Ties lost*: an embedding and a linear layer of the same shape with equal random content before the first step, both
  trained, whose contents differ at the end.
- *One object under two names*: weights are copied from one model to another during training (`target.load_state_dict(
  online.state_dict())`), and all tensors of the one lie at the addresses of the other.

## Evidence
The places of the one object and its uses in a step; the parameters with equal content at the beginning and at the end.

## Limits
Sharing by design that is written as a list of one object fed through itself (`nn.Sequential(*[block] * n)`) is reported; use
one attribute in a loop. Copies of an initialised layer that training makes different are not reported, as torch's own
TransformerEncoder makes them. Ties that were lost before the model was first called cannot be seen.

## What to do
Build each layer on its own: `nn.ModuleList([nn.Linear(d, d) for _ in range(n)])`, in MindSpore `nn.CellList` of `nn.Dense`. Tie
weights by assigning the parameter itself, `head.weight = embedding.weight` (`embedding.embedding_table` in MindSpore), after
everything that replaces it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from itertools import combinations

from trueline.checks.base import Item
from trueline.model import Evidence, Finding, Location, Module, Op, Parameter
from trueline.store import Run
from trueline.views.dataflow import Trace, is_within, parent_of
from trueline.views.own_weights import own_load
from trueline.views.parameters import ParameterHistory, listed
from trueline.views.source import repeated_list_line
from trueline.views.words import either

ITEM = Item(__name__, __doc__)
RANK = 16
CONSEQUENCES = ("cg.03", "tr.05", "hp.01", "hp.02")
GAINS = ("operations",)
_EMPTY_LIST = re.compile(r"(ModuleList|Sequential)\(\s*(\[\s*\])?\s*\)")


def conclude(run: Run) -> Finding:
    if not run.events_of("backward"):
        return ITEM.not_applicable("The run has no backward pass: nothing was trained.")
    history, trace = ParameterHistory(run), Trace(run)
    if not history.weights:
        return ITEM.not_applicable("No module with parameters was called.")
    shared = _one_object_in_several_places(run, trace)
    if shared is not None:
        return shared
    for found in (_copied_onto_itself(run), _copies_that_stay(history), _lost_ties(history)):
        if found is not None:
            return found
    repeated = [module for module in run.modules.values() if module.same_as is not None and _matrices(run, module)]
    if repeated and "operations" in run.unseen and not trace.ops:
        return ITEM.not_checked(
            f"{listed(module.name for module in repeated)}: one object stands at several places, and how it is used inside of "
            "compiled graphs cannot be seen. Record the script in PyNative mode with: trueline run --pynative SCRIPT"
        )
    tied = [parameter for parameter in run.parameters.values() if parameter.same_as is not None and not parameter.buffer]
    summary = f"The {len(history.weights)} parameters are separate, and their contents differ."
    if tied:
        summary = f"{len(tied)} parameters are shared on purpose ({listed(p.name for p in tied)}); all others are separate."
    return ITEM.no_problem(summary, limits=_limits(run, history, trace), confidence=0.9 if trace.ops else 0.7)


# One object under two names


def _copied_onto_itself(run: Run) -> Finding | None:
    found = own_load(run)
    if found is None or found.two_names is None:
        return None
    to, of = found.two_names
    return ITEM.problem(
        f"`{to}` and `{of}` are one and the same: copying the weights from one to the other changes nothing, and what was to "
        "stay behind moves with every step.",
        confidence=0.93,
        evidence=[
            Evidence(
                f"All {found.load.detail['keys']} tensors that are loaded lie at the addresses of those that they go to.",
                {"keys": found.load.detail["keys"]},
                found.load.step,
                found.load.location,
            )
        ],
        location=found.location,
        fix=f"Make `{to}` a model of its own: `{to} = copy.deepcopy({of})`.",
        limits="Any copy of weights onto themselves after training began would have been seen.",
    )


# One object in several places


def _one_object_in_several_places(run: Run, trace: Trace) -> Finding | None:
    places: dict[int, list[Module]] = defaultdict(list)
    for module in run.modules.values():
        if module.same_as is not None and module.same_as in run.modules:
            first = run.modules[module.same_as]
            beside = parent_of(run, first.id) == parent_of(run, module.id)
            if first.root == module.root and (beside or _numbered_alike(run, first, module)):
                places[first.id].append(module)
    for number, others in places.items():
        first = run.modules[number]
        weights = _matrices(run, first)
        if not weights or first.kind == "embedding" or _parent_is_shared(run, others[0]):
            continue
        how = _how_used(trace, first, others, weights[0])
        if how is not None:
            return _shared_finding(run, first, others, how)
    return None


def _numbered_alike(run: Run, first: Module, other: Module) -> bool:
    """Whether the names of two places differ in numbers only, with nothing but containers below their common parent; a BatchNorm
    may stand in numbered blocks, since its statistics are of one place."""
    if re.sub(r"\d+", "#", first.path) != re.sub(r"\d+", "#", other.path) or first.path == other.path:
        return False
    for module in (first, other):
        parent = parent_of(run, module.id)
        beside = first.path.rpartition(".")[0] == other.path.rpartition(".")[0]
        in_block = first.kind == "batch_norm" or (parent is not None and run.modules[parent].kind == "container")
        if not beside and (parent is None or not in_block):
            return False
    return True


def _parent_is_shared(run: Run, module: Module) -> bool:
    parent = parent_of(run, module.id)
    return parent is not None and run.modules[parent].same_as is not None


def _matrices(run: Run, module: Module) -> list[Parameter]:
    """The weights of a module that count: matrices, and those of a BatchNorm, whose statistics are of one place."""
    return [
        parameter
        for parameter in run.parameters.values()
        if parameter.root == module.root
        and not parameter.buffer
        and (len(parameter.shape) > 1 or module.kind == "batch_norm")
        and is_within(run.modules[parameter.module].path, module.path)
    ]


def _how_used(trace: Trace, first: Module, others: list[Module], weight: Parameter) -> str | None:
    """How the uses in one forward pass show that separate layers were meant; None when they do not."""
    calls = [call.seq for call in trace.run.root_calls]
    uses: dict[tuple[int, int], list[Op]] = defaultdict(list)
    for op in trace.users_of_parameter.get(weight.id, []):
        uses[op.step, bisect_right(calls, op.seq)].append(op)
    several = [ops for ops in uses.values() if len(ops) > 1]
    # Layers with names of their own may be one on purpose, unless they do the same work twice.
    numbered = all(_numbered_alike(trace.run, first, other) for other in others)
    for ops in several if numbered else []:
        if any(one.seq in trace.ancestors(trace.sources(other)) for one, other in combinations(ops, 2)):
            return f"in one forward pass it is used {len(ops)} times, each use feeding the next"
    leaf = first.kind in ("linear", "conv")
    for ops in several:
        if leaf and len(ops) > len(others) and len({tuple(op.inputs) for op in ops}) == 1 and "t" not in ops[0].inputs:
            return f"in one forward pass {len(ops)} uses of it take the same input and give the same result"
    parent = parent_of(trace.run, first.id)
    in_sequence = parent is not None and trace.run.modules[parent].type in ("Sequential", "SequentialCell")
    beside = all(other.path.rpartition(".")[0] == first.path.rpartition(".")[0] for other in others)
    if not numbered or not beside or trace.ops:
        return None
    if in_sequence:
        return either(trace.run, pytorch="a Sequential", mindspore="a SequentialCell") + " applies it again and again"
    holder = None if parent is None else trace.run.modules[parent]
    if holder is not None and holder.built is not None and repeated_list_line(trace.run, holder.built) is not None:
        return "the list that holds it was made by repeating it"
    return None


def _shared_finding(run: Run, first: Module, others: list[Module], how: str) -> Finding:
    names = [first.name, *(other.name for other in others)]
    return ITEM.problem(
        f"{listed(names)} are one and the same {first.type}: {len(names)} layers share one set of weights; {how}.",
        confidence=0.95,
        evidence=[
            Evidence(
                f"One module object, built once, stands at {len(names)} places ({listed(names, 6)}), and {how}.",
                {"places": names, "parameters": [p.name for p in _matrices(run, first)]},
                location=first.built,
            )
        ],
        fix="Build each layer on its own, for example "
        + either(run, pytorch="nn.ModuleList([nn.Linear(d, d)", mindspore="nn.CellList([nn.Dense(d, d)")
        + " for _ in range(n)]) instead of [layer] * n. If the sharing is meant, keep one attribute and apply it in a loop.",
        location=_line_of_sharing(run, first),
        limits="Would have seen one object with weights at two numbered places that feeds itself or takes the same input twice.",
    )


def _line_of_sharing(run: Run, first: Module) -> Location | None:
    """The line that puts the one object into several places, as far as it can be told; else the line that built it."""
    container = parent_of(run, first.id)
    while container is not None and run.modules[container].kind == "container":
        above = parent_of(run, container)
        if above is None or run.modules[above].kind != "container":
            break
        container = above
    holder = run.modules[container] if container is not None else None
    if holder is None or holder.kind != "container" or holder.built is None:
        where = first.built
    else:
        where = repeated_list_line(run, holder.built)
        if where is None:
            listed_there = not _EMPTY_LIST.search(holder.built.source or "")
            where = holder.built if listed_there else first.built
    return None if where is None else where.of_module(first.name)


# Equal content


def _equal_at_start(history: ParameterHistory) -> list[list[Parameter]]:
    """Groups of separate matrices of one root that hold the same random content before the first step and are trained."""
    groups: dict[tuple[int, str], list[Parameter]] = defaultdict(list)
    for parameter in history.weights:
        snapshots = history.snapshots(parameter)
        if len(parameter.shape) < 2 or len(snapshots) < 2 or snapshots[0].step != -1 or not snapshots[0].row_spread:
            continue
        if history.always_trainable(parameter) and history.is_held(parameter) and "value" in history.gradients(parameter):
            groups[parameter.root, snapshots[0].digest].append(parameter)
    return [group for group in groups.values() if len(group) > 1]


def _is_embedding_and_head(history: ParameterHistory, group: list[Parameter]) -> bool:
    kinds = {history.run.modules[parameter.module].kind for parameter in group}
    return "embedding" in kinds and bool(kinds & {"linear", "other"})


def _copies_that_stay(history: ParameterHistory) -> Finding | None:
    for group in _equal_at_start(history):
        ends = {history.snapshots(parameter)[-1].digest for parameter in group}
        moved = all(not history.never_moved(parameter) for parameter in group)
        if len(ends) > 1 or not moved or _is_embedding_and_head(history, group):
            continue
        where = _line_of_copies(history.run, group)
        return ITEM.problem(
            f"{listed(p.name for p in group)} are separate weights that start as copies and are still equal after "
            f"{history.optimizer_steps} optimizer steps: they get the same gradients and do the work of one.",
            confidence=0.9,
            evidence=[
                Evidence(
                    f"{p.name} {list(p.shape)}: content {history.snapshots(p)[0].digest} before the first step, "
                    f"{history.snapshots(p)[-1].digest} at the end.",
                    {"first": history.snapshots(p)[0].digest, "last": history.snapshots(p)[-1].digest},
                    history.snapshots(p)[-1].step,
                )
                for p in group[:6]
            ],
            fix="Initialise each of them on its own (build each layer anew instead of copying one, and do not set the seed "
            "again before each).",
            location=where,
            limits="Would have seen any two matrices of one model that are equal before the first step and at the end.",
        )
    return None


def _line_of_copies(run: Run, group: list[Parameter]) -> Location | None:
    """The line that holds the copies together: the one that built the last of them, or the container that holds them."""
    for parameter in reversed(group):
        module: int | None = parameter.module
        while module is not None:
            built = run.modules[module].built
            if built is not None and run.modules[module].path:
                return built.of_module(run.modules[parameter.module].name)
            module = parent_of(run, module)
    return None


def _lost_ties(history: ParameterHistory) -> Finding | None:
    run = history.run
    for group in _equal_at_start(history):
        if not _is_embedding_and_head(history, group):
            continue
        if len({history.snapshots(parameter)[-1].digest for parameter in group}) == 1:
            continue
        heads = [parameter for parameter in group if run.modules[parameter.module].kind != "embedding"]
        head, embedding = heads[0], next(p for p in group if run.modules[p.module].kind == "embedding")
        where = head.initialised or run.modules[head.module].built
        return ITEM.problem(
            f"{embedding.name} and {head.name} start with the same content, as tied weights do, but are two parameters that "
            "training moves apart.",
            confidence=0.85,
            evidence=[
                Evidence(
                    f"Both {list(head.shape)} hold {history.snapshots(head)[0].digest} before the first step; at the end they "
                    f"hold {history.snapshots(embedding)[-1].digest} and {history.snapshots(head)[-1].digest}.",
                    {"embedding": embedding.name, "head": head.name},
                    history.snapshots(head)[-1].step,
                    where,
                )
            ],
            fix="Tie the parameter itself, head.weight = embedding."
            f"{either(run, pytorch='weight', mindspore='embedding_table')}, instead of copying its values.",
            location=None if where is None else where.of_module(run.modules[head.module].name),
            limits="Would have seen any embedding and output layer with equal content before the first step that part later.",
        )
    return None


def _limits(run: Run, history: ParameterHistory, trace: Trace) -> str:
    steps = len({op.step for op in trace.ops.values()})
    return (
        f"Looked at {len(run.modules)} modules and {len(history.weights)} parameters, and at their uses in {steps} traced "
        "steps. Would have seen one object at several numbered places, equal weights that stay equal, and an embedding and a "
        "head that part."
    )
