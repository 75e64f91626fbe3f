"""The layers of a run in the order in which they are called, with their parameters by role: what two runs are paired by."""

from __future__ import annotations

import re
from functools import cached_property

import msgspec

from trueline.compare.conventions import role
from trueline.model import Module, Parameter
from trueline.store import Run
from trueline.store.joined_names import together

# Buffers that belong to what a layer learns; masks, tables and counters are the script's own affair.
_STATISTICS = {"running_mean", "running_var"}
# What authors call the same part of a model.
_WORDS = {
    "q": "query", "wq": "query", "toq": "query", "qproj": "query", "queries": "query", "k": "key", "wk": "key", "tok": "key",
    "kproj": "key", "keys": "key", "v": "value", "wv": "value", "tov": "value", "vproj": "value", "values": "value",
    "wo": "output", "out": "output", "proj": "output", "oproj": "output", "outproj": "output", "projection": "output",
    "fc": "linear", "dense": "linear", "lin": "linear", "head": "classifier", "cls": "classifier", "norm": "norm", "ln": "norm",
    "bn": "norm", "layernorm": "norm", "batchnorm": "norm", "emb": "embedding", "embed": "embedding", "wte": "embedding",
    "wpe": "position", "pos": "position", "downsample": "shortcut", "skip": "shortcut", "identity": "shortcut",
    "act": "activation",
}  # fmt: skip


class Layer(msgspec.Struct, frozen=True, dict=True):
    """A module that has parameters of its own, or none below it; `place` counts the calls before its first one. `parts`: the
    layers that it stands for, where the other side has them as one."""

    module: Module
    root: str
    parameters: dict[str, Parameter]
    place: float
    is_leaf: bool = True
    parts: tuple[Layer, ...] = ()
    is_called: bool = True
    # Of what it gave first, without the first axis.
    gives: tuple[int, ...] | None = None

    @property
    def path(self) -> str:
        if self.parts:
            return together([part.path for part in self.parts])
        return f"{self.root}.{self.module.path}".rstrip(".")

    @property
    def name(self) -> str:
        return " + ".join(part.name for part in self.parts) or self.module.name

    @property
    def modules(self) -> list[Module]:
        return [part.module for part in self.parts] or [self.module]

    @cached_property
    def named(self) -> dict[str, Parameter]:
        """Its parameters by their names in the whole run, `root.path`."""
        return {f"{self.root}.{parameter.path}": parameter for parameter in self.parameters.values()}

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {role: parameter.shape for role, parameter in self.parameters.items()}

    @cached_property
    def words(self) -> list[str]:
        """The parts of its name, in words that most authors would agree on, the last part first."""
        return words_of(self.module.path)[::-1]


def words_of(path: str) -> list[str]:
    found = []
    for part in path.lower().split("."):
        plain = re.sub(r"[_\d]+", "", part)
        found.append(_WORDS.get(plain, plain) or part)
    return found


def learnt_by_name(run: Run) -> dict[str, Parameter]:
    """All parameters of a run, by their names in it, `root.path`; no buffers."""
    return {f"{run.modules[each.root].name}.{each.path}": each for each in run.parameters.values() if not each.buffer}


def call_order(run: Run) -> dict[int, int]:
    """Modules by the place of their first call that ended with an output that was measured; empty where calls are not seen."""
    found: dict[int, int] = {}
    for stat in run.stats("output"):
        found.setdefault(stat.subject, len(found))
    return found


def layers_of_both(mine: Run, reference: Run) -> tuple[list[Layer], list[Layer]]:
    """The layers of two runs that may be each other's; without copies of a model that one side keeps and the other does not,
    as for averages of its weights."""
    own, expected = layers_of_run(mine), layers_of_run(reference)
    excess = len({layer.root for layer in own if layer.parameters}) - len({layer.root for layer in expected if layer.parameters})
    if excess > 0:
        own = _without_copies(mine, own)
    elif excess < 0:
        expected = _without_copies(reference, expected)
    return own, expected


def _without_copies(run: Run, layers: list[Layer]) -> list[Layer]:
    """The layers but for those of models that are never trained and have the same parameters as one that is."""
    trained = {run.modules[call.module].root for call in run.root_calls if call.grad and not call.loss}
    held: dict[int, set[tuple[str, tuple[int, ...]]]] = {}
    for parameter in run.parameters.values():
        held.setdefault(parameter.root, set()).add((parameter.path, parameter.shape))
    learning = [held[root] for root in trained if root in held]
    copies = {root for root, parameters in held.items() if root not in trained and parameters in learning}
    return [layer for layer in layers if layer.module.root not in copies]


def layers_of_run(run: Run) -> list[Layer]:
    """The layers of the models of a run."""
    modules = [module for module in run.modules.values() if module.kind != "loss"]
    order = call_order(run)
    layers = layers_of(modules, list(run.parameters.values()), order, {root.id: root.name for root in run.roots})
    given: dict[int, tuple[int, ...]] = {}
    for stat in run.stats("output"):
        given.setdefault(stat.subject, stat.shape[1:])
    return [msgspec.structs.replace(layer, gives=given.get(layer.module.id)) for layer in layers]


def layers_of(modules: list[Module], parameters: list[Parameter], order: dict[int, int], roots: dict[int, str]) -> list[Layer]:
    owned: dict[int, dict[str, Parameter]] = {}
    for parameter in parameters:
        if parameter.same_as is None and (not parameter.buffer or role(parameter.path) in _STATISTICS):
            owned.setdefault(parameter.module, {})[role(parameter.path)] = parameter
    parents = {(module.root, module.path.rpartition(".")[0]) for module in modules if module.path}
    by_path = {(module.root, module.path): module for module in modules}
    unseen = len(order)
    layers = []
    for module in modules:
        is_leaf = (module.root, module.path) not in parents
        if module.same_as is not None or not (module.id in owned or is_leaf) or module.kind in {"container", "identity"}:
            continue
        around = by_path.get((module.root, module.path.rpartition(".")[0]))
        place: float = order.get(module.id, unseen + module.id)
        if module.id not in order and around is not None and around.id in order and around.id in owned:
            # Its weights are used by the module around it, after that one's own: `out_proj` of an attention.
            place = order[around.id] + 0.5
        if not is_leaf and module.id in order and module.kind != "other":
            # A layer that ends with an activation of its own uses its weights first.
            below = [order[each.id] for each in modules if each.id in order and _is_below(each, module)]
            place = min(below, default=place + 0.5) - 0.5
        layers.append(
            Layer(module, roots.get(module.root, ""), owned.get(module.id, {}), place, is_leaf, is_called=module.id in order)
        )
    return sorted(layers, key=lambda layer: layer.place)


def _is_below(module: Module, around: Module) -> bool:
    return module.root == around.root and (not around.path or module.path.startswith(f"{around.path}.")) and module is not around
