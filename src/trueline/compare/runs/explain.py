"""Why two runs part where they do: the setting of the layer, else what the operations before it do otherwise."""

from __future__ import annotations

import math

import msgspec

from trueline.compare.runs.difference import Difference
from trueline.compare.runs.gradients import SIZE
from trueline.compare.runs.localise import Parting
from trueline.compare.runs.operations import OtherOperations, other_operations
from trueline.compare.runs.pairing import Pair
from trueline.compare.runs.settings import same
from trueline.compare.runs.sides import Sides
from trueline.knowledge import default_settings
from trueline.model import Divergence
from trueline.store import Run

_NEARLY = 0.01


def explained(parting: Parting, differences: list[Difference], sides: Sides) -> Divergence:
    """The divergence in words, with the setting that explains it where there is one."""
    evidence = [_measured(parting)]
    module = parting.pair.mine.module if parting.pair is not None else None
    other = parting.pair.reference.module if parting.pair is not None else None
    if parting.phase in {"backward", "update"}:
        return _of_update(parting, differences, sides.reference, evidence)
    own = [each for each in differences if each.subject == "layer" and module is not None and each.module == module.name]
    own = [each for each in own if not each.hidden or parting.what == "running statistics"]
    # The operations are those of the first step.
    other_ops = other_operations(parting, sides) if parting.step == 0 else None
    if other_ops is not None and parting.unsure and not parting.between:
        return _by_operations(other_ops, parting, own, evidence)
    if not parting.between and own:
        cause = _with_defaults(min(own, key=lambda each: each.setting == "padding"), parting.pair, sides)
        return _by(cause, parting, evidence + [each.sentence for each in own if each.setting != cause.setting])
    if other_ops is not None:
        return _by_operations(other_ops, parting, own, evidence)
    if own:
        return _by(own[0], parting, evidence)
    location = (module.called or module.built) if module is not None else None
    carried, fix = None, "Compare the code of both modules line by line."
    if parting.step > 0:
        carried = (
            "The first step and its update are the same, and what this step computes is not: something that is carried over from "
            "the step before it differs, such as a state that is kept or reset."
        )
        fix = "Carry over what the reference carries over from step to step."
    return Divergence(
        parting.step, parting.phase, module.name if module else None, other.name if other else None, location, carried, "cg.03",
        fix, evidence,
    )  # fmt: skip


def _with_defaults(cause: Difference, pair: Pair | None, sides: Sides) -> Difference:
    """The difference with what the frameworks do where nothing is said, when that is how it came about."""
    mine, reference = sides.mine.framework, sides.reference.framework
    if pair is None or mine is None or reference is None or mine == reference:
        return cause
    own = default_settings(mine, pair.mine.module.kind, pair.mine.module.type).get(cause.setting)
    if own is None or not same(own, cause.mine):
        return cause
    name = {"mindspore": "MindSpore", "pytorch": "PyTorch"}
    sentence = f"{cause.sentence} It is {name.get(mine, mine)}'s default."
    other = default_settings(reference, pair.reference.module.kind, pair.reference.module.type).get(cause.setting)
    if other is not None and same(other, cause.reference):
        sentence = f"{sentence[:-1]}; {name.get(reference, reference)}'s is the other."
    return msgspec.structs.replace(cause, sentence=sentence)


def _by_operations(told: OtherOperations, parting: Parting, own: list[Difference], evidence: list[str]) -> Divergence:
    """By what is computed otherwise; where the layer pads otherwise too, the two may make up for each other."""
    sentence, place, name = told.sentence, told.location, told.module
    module = parting.pair.mine.module if parting.pair is not None else None
    other = parting.pair.reference.module if parting.pair is not None else None
    inside = not parting.between and not parting.unsure
    if own:
        sentence = f"{sentence} {own[0].sentence}"
    named = module.name if inside and module is not None else name or (module.name if module is not None else None)
    return Divergence(
        parting.step, parting.phase, named, other.name if other else None, place or (module.called if module else None), sentence,
        "api.01" if inside or told.by_settings else "cg.03", told.fix, evidence,
    )  # fmt: skip


def _measured(parting: Parting) -> str:
    where = "the model" if parting.pair is None else parting.pair.mine.module.name or parting.pair.mine.module.type
    why = f" ({parting.apart.why})" if parting.apart.why else ""
    return (
        f"Step {parting.step}: the {parting.what} of {where} is {parting.apart.relative:.3g} off, relative to its length{why}; "
        f"noise explains {parting.floor:.2g}."
    )


def _by(cause: Difference, parting: Parting, evidence: list[str]) -> Divergence:
    return Divergence(
        parting.step, parting.phase, cause.module, cause.reference_module, cause.location, cause.sentence, cause.item, cause.fix,
        evidence,
    )  # fmt: skip


def _of_update(parting: Parting, differences: list[Difference], reference: Run, evidence: list[str]) -> Divergence:
    """Gradients or updates that differ: clipping and the optimizer, then what only its effect tells."""
    order = {"gradient": 0, "clip": 1, "optimizer": 2, "schedule": 3}
    if parting.phase == "update":
        # With the same gradients, one that is cut off somewhere explains nothing; a parameter that is frozen gets none, and
        # clipping may have made gradients the same.
        order = {"gradient": 0, "optimizer": 1, "schedule": 2, "clip": 3}
        differences = [each for each in differences if each.subject != "gradient" or each.setting in {"trainable", SIZE}]
    known = [each for each in differences if each.subject in order and each.step <= parting.step + 1]
    causes = sorted(known, key=lambda each: order[each.subject])
    if causes:
        cause = causes[0]
        if cause.subject == "gradient" and cause.location is None and parting.pair is not None:
            # What is missing has no line: the layer is named that gets another gradient.
            layer, other = parting.pair.mine.module, parting.pair.reference.module
            cause = msgspec.structs.replace(
                cause, module=layer.name, reference_module=other.name, location=layer.called or layer.built
            )
        step = cause.step if cause.setting == SIZE else max(parting.step, cause.step)
        return Divergence(
            step, cause.phase, cause.module, cause.reference_module, cause.location, cause.sentence,
            cause.item, cause.fix, evidence + [each.sentence for each in causes[1:]],
        )  # fmt: skip
    pair = parting.pair
    module = pair.mine.module if pair is not None else None
    cause_text = _by_factor(parting, reference)
    return Divergence(
        parting.step, parting.phase, module.name if module else None, pair.reference.module.name if pair else None,
        module.called if module else None, cause_text, "cg.02" if parting.phase == "backward" else "api.01",
        "Compare what happens between the backward pass and the optimizer's step.", evidence,
    )  # fmt: skip


def _by_factor(parting: Parting, reference: Run) -> str | None:
    """What the size of an update tells where all settings are the same: a setting may be without effect."""
    factor = parting.apart.factor
    if math.isnan(factor) or abs(factor - 1) <= _NEARLY:
        return None
    told = {each.name: each.value for each in reversed(reference.hyperparameters)}
    momentum = told.get("momentum")
    if (
        parting.phase == "update"
        and told.get("nesterov")
        and isinstance(momentum, float)
        and abs(factor * (1 + momentum) - 1) < _NEARLY
    ):
        return (
            f"nesterov is set on both sides, but the update is {factor:.4g} times the reference's, which is 1 / (1 + momentum): "
            "this optimizer does not use it here."
        )
    return f"It is about {factor:.4g} times the reference's."


def pairs_as_rows(pairs: list[Pair]) -> list[dict[str, object]]:
    return [
        {
            "mine": pair.mine.name, "reference": pair.reference.name, "kind": pair.mine.module.kind,
            "confidence": round(pair.confidence, 3),
        }
        for pair in pairs
    ]  # fmt: skip
