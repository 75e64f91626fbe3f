"""Why two runs part where they do: the setting of the layer, else what the operations before it do otherwise."""

from __future__ import annotations

from collections import Counter

from trueline.checks._dataflow import line_of, plain
from trueline.compare.difference import Difference
from trueline.compare.layers import Layer
from trueline.compare.localise import Parting
from trueline.compare.pairing import Pair
from trueline.knowledge import family_of, meaning_of
from trueline.model import Divergence, Location, Op
from trueline.store import Run

_STEP_OF_TRACE = 0
_NEARLY = 0.01


def explained(parting: Parting, differences: list[Difference], mine: Run, reference: Run) -> Divergence:
    """The divergence in words, with the setting that explains it where there is one."""
    evidence = [_measured(parting)]
    module = parting.pair.mine.module if parting.pair is not None else None
    other = parting.pair.reference.module if parting.pair is not None else None
    if parting.phase in {"backward", "update"}:
        return _of_update(parting, differences, reference, evidence)
    own = [each for each in differences if each.subject == "layer" and module is not None and each.module == module.name]
    own = [each for each in own if not each.hidden or parting.what == "running statistics"]
    other_ops = _other_operations(parting, mine, reference)
    if other_ops is not None and parting.unsure and not parting.between:
        return _by_operations(other_ops, parting, mine, own, evidence)
    if not parting.between and own:
        cause = sorted(own, key=lambda each: each.setting == "padding")[0]
        return _by(cause, parting, evidence + [each.sentence for each in own if each is not cause])
    if other_ops is not None:
        return _by_operations(other_ops, parting, mine, own, evidence)
    if own:
        return _by(own[0], parting, evidence)
    location = (module.called or module.built) if module is not None else None
    return Divergence(
        parting.step, parting.phase, module.name if module else None, other.name if other else None, location, None, "cg.03",
        "Compare the code of both modules line by line.", evidence,
    )  # fmt: skip


def _by_operations(
    told: tuple[str, Location | None, str | None], parting: Parting, mine: Run, own: list[Difference], evidence: list[str]
) -> Divergence:
    """By what is computed otherwise; where the layer pads otherwise too, the two may make up for each other."""
    sentence, place, name = told
    module = parting.pair.mine.module if parting.pair is not None else None
    other = parting.pair.reference.module if parting.pair is not None else None
    inside = not parting.between and not parting.unsure
    if own:
        sentence = f"{sentence} {own[0].sentence}"
    named = module.name if inside and module is not None else name or (module.name if module is not None else None)
    return Divergence(
        parting.step, parting.phase, named, other.name if other else None, place or (module.called if module else None), sentence,
        "api.01" if inside else "cg.03", "Compute the same as the reference there.", evidence,
    )  # fmt: skip


def _measured(parting: Parting) -> str:
    where = "the model" if parting.pair is None else parting.pair.mine.module.name or parting.pair.mine.module.type
    why = f" ({parting.apart.why})" if parting.apart.why else ""
    return (
        f"Step {parting.step}: the {parting.what} of {where} is {parting.apart.relative:.3g} off, relative to its length{why}; noise "
        f"explains {parting.floor:.2g}."
    )


def _by(cause: Difference, parting: Parting, evidence: list[str]) -> Divergence:
    return Divergence(
        parting.step, parting.phase, cause.module, cause.reference_module, cause.location, cause.sentence, cause.item, cause.fix,
        evidence,
    )  # fmt: skip


def _of_update(parting: Parting, differences: list[Difference], reference: Run, evidence: list[str]) -> Divergence:
    """Gradients or updates that differ: clipping and the optimizer, then what only its effect tells."""
    order = {"clip": 0, "optimizer": 1, "schedule": 2, "loss": 3}
    if parting.phase == "update":
        order = {"optimizer": 0, "schedule": 1, "clip": 2}
    known = [each for each in differences if each.subject in order and each.step <= parting.step + 1]
    causes = sorted(known, key=lambda each: order[each.subject])
    if causes:
        cause = causes[0]
        phase = "update" if cause.subject in {"clip", "optimizer", "schedule"} else parting.phase
        return Divergence(
            max(parting.step, cause.step), phase, None, None, cause.location, cause.sentence, cause.item, cause.fix,
            evidence + [each.sentence for each in causes[1:]],
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
    if factor != factor or abs(factor - 1) <= _NEARLY:
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


def _other_operations(parting: Parting, mine: Run, reference: Run) -> tuple[str, Location | None, str | None] | None:
    """What is computed otherwise between the last layer that is right and the first that is not."""
    pair, after = parting.pair, parting.after
    own = _region(mine, after.mine if after else None, pair.mine if pair else None, inside=not parting.between)
    expected = _region(
        reference, after.reference if after else None, pair.reference if pair else None, inside=not parting.between
    )
    if not own and not expected:
        return None
    a = Counter(family for op in own if (family := _family(op)) is not None)
    b = Counter(family for op in expected if (family := _family(op)) is not None)
    missing, extra = b - a, a - b
    if parting.unsure and set(missing) | set(extra) > {"pad"}:
        # Padding before a layer or in it comes to the same.
        missing.pop("pad", None)
        extra.pop("pad", None)
    if not missing and not extra:
        return _other_numbers(own, expected, mine)
    words = []
    if missing:
        words.append(f"the reference computes {_listed(missing)} there, mine does not")
    if extra:
        words.append(f"mine computes {_listed(extra)}, which the reference does not")
    shown = next((op for op in own if _family(op) in extra), own[-1] if own else None)
    place = line_of(mine, shown) if shown is not None else None
    name = _module_name(mine, shown)
    sentence = f"{'; '.join(words)}."
    return sentence[0].upper() + sentence[1:], place, name


def _other_numbers(own: list[Op], expected: list[Op], mine: Run) -> tuple[str, Location | None, str | None] | None:
    """The same operations with other settings."""
    for a, b in zip(own, expected, strict=False):
        first, second = _numbers(a), _numbers(b)
        if _family(a) == _family(b) and first != second and first and second:
            sentence = f"`{plain(a.name)}` is computed with {first}, in the reference with {second}."
            return sentence, line_of(mine, a), _module_name(mine, a)
    return None


def _numbers(op: Op) -> list[float]:
    return [value for value in op.settings.get("args") or [] if isinstance(value, int | float) and not isinstance(value, bool)]


def _listed(families: Counter[str]) -> str:
    return " and ".join(meaning_of(family) for family in families)


def _family(op: Op) -> str | None:
    return family_of(plain(op.name), op.settings)


def _module_name(run: Run, op: Op | None) -> str | None:
    return run.modules[op.module].name if op is not None and op.module in run.modules else None


def _region(run: Run, after: Layer | None, until: Layer | None, *, inside: bool) -> list[Op]:
    """The traced operations after those of one layer and before those of another (or also inside of it)."""
    traced = [op for op in run.ops if op.step == _STEP_OF_TRACE]
    if not traced:
        return []
    start = _last(traced, after) if after is not None else -1
    end = _first(traced, until, start) if until is not None else traced[-1].seq + 1
    if inside and until is not None:
        end = max((op.seq for op in traced if op.module == until.module.id), default=end) + 1
    return [op for op in traced if start < op.seq < end]


def _last(traced: list[Op], layer: Layer) -> int:
    return max((op.seq for op in traced if op.module == layer.module.id), default=-1)


def _first(traced: list[Op], layer: Layer, start: int) -> int:
    return min((op.seq for op in traced if op.module == layer.module.id and op.seq > start), default=traced[-1].seq + 1)


def nearest_difference(differences: list[Difference], phase: str) -> Difference | None:
    return next((each for each in differences if each.phase == phase), None)


def pairs_as_rows(pairs: list[Pair]) -> list[dict[str, object]]:
    return [
        {
            "mine": pair.mine.module.name, "reference": pair.reference.module.name, "kind": pair.mine.module.kind,
            "confidence": round(pair.confidence, 3),
        }
        for pair in pairs
    ]  # fmt: skip
