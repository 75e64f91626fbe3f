"""The settings in which two runs differ: of layers, losses, optimizers, schedules, clipping and precision."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from trueline.compare.runs.difference import Difference
from trueline.compare.runs.pairing import Pair
from trueline.knowledge import change_of, layer_settings, loss_settings, optimizer_settings
from trueline.model import Location, LossCall, Module
from trueline.store import Run
from trueline.views.source import line_that_sets

_CLOSE = 1e-9
# Settings that runs without dropout, or that only evaluations, show nothing of.
_HIDDEN = {"p", "dropout", "momentum"}


def layer_differences(pairs: list[Pair], framework: str | None) -> list[Difference]:
    found = []
    for pair in pairs:
        mine, reference = pair.mine.module, pair.reference.module
        # Several layers for one have what is between them as layers of their own.
        alike = mine.kind == reference.kind and not (mine.kind == "recurrent" and (pair.mine.parts or pair.reference.parts))
        own, expected = layer_settings(mine), layer_settings(reference) if alike else {}
        found += [
            _of_layer(mine, reference, name, own[name], expected[name], framework)
            for name in own.keys() & expected.keys()
            if not same(own[name], expected[name]) and not _without_effect(mine, reference, name)
        ]
        for role in _without_counterpart(pair):
            mine_has, reference_has = role in pair.mine.shapes, role in pair.reference.shapes
            found.append(_of_layer(mine, reference, role, _present(mine_has), _present(reference_has), framework))
    return found


def _without_counterpart(pair: Pair) -> list[str]:
    """Roles of parameters that only one of both layers has. A parameter of the script's own may have any name: it is the one of
    the same shape."""
    if pair.mine.module.kind == "other":
        return []
    mine, reference = pair.mine.shapes, pair.reference.shapes
    own, expected = [role for role in mine if role not in reference], [role for role in reference if role not in mine]
    if sorted(mine[role] for role in own) == sorted(reference[role] for role in expected):
        return []
    return sorted([*own, *expected])


def _without_effect(mine: Module, reference: Module, name: str) -> bool:
    """Dropout between layers of a recurrent module that has one."""
    layers = [module.settings.get("num_layers") for module in (mine, reference)]
    return mine.kind == "recurrent" and name == "dropout" and layers == [1, 1]


def _present(there: bool) -> str:  # noqa: FBT001 - a word for it
    return "present" if there else "missing"


def _of_layer(mine: Module, reference: Module, name: str, own: Any, expected: Any, framework: str | None) -> Difference:
    what = "activation" if name == "type" and mine.kind == "activation" else name
    where = mine.name or mine.type
    call = change_of(framework, mine.kind, mine.type, name, expected)
    return Difference(
        "layer", name, own, expected, "forward", "api.01",
        f"{what} of {where} ({mine.type}) is {shown(own)}, in the reference {shown(expected)} "
        f"({reference.name or reference.type}, {reference.type}).",
        f"Give {where} {what} {shown(expected)}{'.' if call is None else f': {call}'}", mine.name,
        reference.name, mine.built or mine.called, hidden=name in _HIDDEN,
    )  # fmt: skip


def loss_differences(mine: Run, reference: Run) -> list[Difference]:
    own, expected = _first_loss(mine), _first_loss(reference)
    if own is None or expected is None:
        return []
    a, b = loss_settings(own), loss_settings(expected)
    location = _line_of_loss(mine, own)
    return [
        Difference(
            "loss", name, a[name], b[name], "loss", "cg.04",
            f"{name} of the loss ({own.kind}) is {shown(a[name])}, in the reference {shown(b[name])}.",
            f"Give the loss {name} {shown(b[name])}.", None, None, location,
        )
        for name in a
        if not same(a[name], b[name])
    ]  # fmt: skip


def _first_loss(run: Run) -> LossCall | None:
    return next((call for call in run.loss_calls if call.grad), None)


def _line_of_loss(run: Run, call: LossCall) -> Location | None:
    built = [module.built for module in run.modules.values() if module.kind == "loss" and module.built is not None]
    return built[0] if len(built) == 1 else call.location


def optimizer_differences(mine: Run, reference: Run, parameters: dict[str, str]) -> list[Difference]:
    """Compared for each pair of parameters, since groups may be cut in any way."""
    own, expected = _settings_by_parameter(mine), _settings_by_parameter(reference)
    counts: Counter[tuple[str, str, str]] = Counter()
    values: dict[tuple[str, str, str], tuple[Any, Any]] = {}
    examples: dict[tuple[str, str, str], str] = {}
    compared = 0
    for name, other in parameters.items():
        if name not in own or other not in expected:
            continue
        compared += 1
        a, b = own[name], expected[other]
        for setting in (a.keys() & b.keys()) | ({"weight_decay_form"} & a.keys() & b.keys()):
            if not same(a[setting], b[setting]):
                key = (setting, shown(a[setting]), shown(b[setting]))
                counts[key] += 1
                values[key] = (a[setting], b[setting])
                examples.setdefault(key, name)
    location = next((optimizer.built for optimizer in mine.optimizers.values() if optimizer.built), None)
    found = []
    for key, count in counts.most_common():
        setting = key[0]
        a, b = values[key]
        some = "" if count == compared else f" for {count} of {compared} parameters (such as {examples[key]})"
        words = {"lr": "learning rate (lr)", "weight_decay_form": "form of the weight decay", "type": "optimizer"}.get(
            setting, setting
        )
        found.append(
            Difference(
                "optimizer", setting, a, b, "update", "hp.01" if setting == "lr" else "api.01",
                f"{words} of the optimizer is {key[1]}, in the reference {key[2]}{some}.",
                f"Set {words} to {key[2]}{some}.", None, None, location,
            )
        )  # fmt: skip
    return found


def _settings_by_parameter(run: Run) -> dict[str, dict[str, Any]]:
    """By `root.path`: what the optimizer does with this parameter at the first step."""
    values: dict[tuple[int, int], dict[str, Any]] = {}
    for each in run.hyperparameters:
        values.setdefault((each.optimizer, each.group), {}).setdefault(each.name, each.value)
    found = {}
    for held in run.optimizer_parameters:
        if held.parameter is None or held.parameter not in run.parameters:
            continue
        parameter = run.parameters[held.parameter]
        kind = run.optimizers[held.optimizer].type
        given = values.get((held.optimizer, held.group), {})
        if any(word in parameter.path for word in given.get("undecayed", ())):
            given = {**given, "weight_decay": 0.0}
        settings = optimizer_settings(kind, given)
        found[f"{run.modules[parameter.root].name}.{parameter.path}"] = settings
    return found


def schedule_difference(mine: Run, reference: Run, *, lasting: int) -> Difference | None:
    """The first step from which on the learning rates are not the same for so many steps: what is not read at every step is known
    a little late."""
    own, expected = _rates(mine), _rates(reference)
    steps = min(len(own), len(expected))
    off = [not _same_rate(own[step], expected[step]) for step in range(steps)]
    for step in range(steps):
        a, b = own[step], expected[step]
        if a is not None and b is not None and off[step] and all(off[step : step + lasting]):
            built = [event.location for event in mine.events_of("scheduler_step") if event.location is not None]
            optimizer = next((each.built for each in mine.optimizers.values() if each.built), None)
            where = built[0] if built else (line_that_sets(mine, optimizer, "lr") if optimizer else None) or optimizer
            return Difference(
                "schedule", "lr", a, b, "update", "hp.01",
                f"The learning rate (lr) at step {step} is {a:.4g}, in the reference {b:.4g}"
                f"{'' if step == 0 else '; before that step both schedules are the same'}.",
                "Use the reference's learning rate schedule.", None, None, where if step else optimizer, step,
            )  # fmt: skip
    return None


def _same_rate(mine: float | None, reference: float | None) -> bool:
    return mine is None or reference is None or math.isclose(mine, reference, rel_tol=1e-6)


def _rates(run: Run) -> list[float | None]:
    """The learning rate of the first group at every step."""
    first = min((each.optimizer for each in run.hyperparameters), default=None)
    rates = [each for each in run.hyperparameters if each.name == "lr" and each.group == 0 and each.optimizer == first]
    changes = [(each.step, each.value) for each in rates]
    found: list[float | None] = []
    current: float | None = None
    for step in run.steps:
        while changes and changes[0][0] <= step.id:
            value = changes.pop(0)[1]
            current = float(value) if isinstance(value, int | float) else None
        found.append(current)
    return found


def clip_differences(mine: Run, reference: Run) -> list[Difference]:
    own, expected = _clip(mine), _clip(reference)
    if own == expected or (own is not None and expected is not None and own[0] == expected[0] and same(own[1], expected[1])):
        return []
    line = next((event.location for event in mine.events_of("clip") if event.location is not None), None)
    step = next((event.location for event in mine.events_of("optimizer_step") if event.location is not None), None)
    said, other = (_clip_in_words(each) for each in (own, expected))
    fix = "Do not clip them." if expected is None else f"Clip them {other.removeprefix('clipped ')}."
    sentence = f"Gradients are {said}, in the reference {f'they are {other}' if expected is None else other}."
    return [
        Difference(
            "clip", "limit", own and own[1], expected and expected[1], "update", "hp.01", sentence, fix, None, None, line or step
        )
    ]


def _clip_in_words(clip: tuple[str, Any] | None) -> str:
    if clip is None:
        return "not clipped"
    return f"clipped by {clip[0]} at {shown(clip[1])}"


def _clip(run: Run) -> tuple[str, Any] | None:
    """How gradients are clipped, and at what."""
    detail = next((event.detail for event in run.events_of("clip")), None)
    return None if detail is None else (str(detail.get("kind")), detail.get("limit"))


def precision_difference(mine: Run, reference: Run) -> Difference | None:
    a, b = coarsest(mine), coarsest(reference)
    if a == b:
        return None
    return Difference(
        "precision", "dtype", a, b, "forward", "mp.01", f"The model computes in {a}, the reference in {b}.",
        f"Compute in {b}.", None, None, None,
    )  # fmt: skip


def coarsest(run: Run) -> str:
    """The coarsest floating-point type among the outputs of layers."""
    seen = {stat.dtype for stat in run.stats("output")}
    return next((dtype for dtype in ("bfloat16", "float16") if dtype in seen), "float32")


def same(mine: Any, reference: Any) -> bool:
    if isinstance(mine, list | tuple) and isinstance(reference, list | tuple):
        return len(mine) == len(reference) and all(same(a, b) for a, b in zip(mine, reference, strict=True))
    if isinstance(mine, bool) or isinstance(reference, bool):
        return bool(mine) == bool(reference)
    if isinstance(mine, int | float) and isinstance(reference, int | float):
        return math.isclose(mine, reference, rel_tol=1e-6, abs_tol=_CLOSE * 1e-6)
    return bool(mine == reference)


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return f"({', '.join(shown(part) for part in value)})"
    return str(value)
