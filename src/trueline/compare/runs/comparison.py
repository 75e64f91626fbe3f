"""The comparison of two runs: pair, measure, localise, explain."""

from __future__ import annotations

from typing import Any

import msgspec

from trueline.compare.fused import fused_parameters
from trueline.compare.runs.beginnings import data_differences, initial_differences, size_differences
from trueline.compare.runs.curves import Curves, compare_losses
from trueline.compare.runs.difference import Difference
from trueline.compare.runs.explain import explained, pairs_as_rows
from trueline.compare.runs.fairness import repeats, why_not_fair
from trueline.compare.runs.gradients import SIZE, gradient_differences
from trueline.compare.runs.layers import Layer, layers_of_both
from trueline.compare.runs.localise import (
    Parting,
    backward,
    first_off,
    forward,
    running_statistics,
    update,
    without_counterpart,
)
from trueline.compare.runs.measure import Distance
from trueline.compare.runs.operations import other_operations
from trueline.compare.runs.pairing import Pair, all_parameters, loose_pairs, pair_layers, parameter_pairs
from trueline.compare.runs.settings import (
    clip_differences,
    coarsest,
    layer_differences,
    loss_differences,
    optimizer_differences,
    precision_difference,
    schedule_difference,
)
from trueline.compare.runs.sides import Sides
from trueline.compare.runs.ties import tie_differences
from trueline.model import Comparison, Divergence
from trueline.store import Run
from trueline.store.joined_names import first_of

# Rates that are not read at every step are known at most so many steps late.
_LASTING = 8


# What changes the weights, whatever is computed from them.
_OF_UPDATES = {"optimizer", "clip", "schedule", "gradient"}


class Aligned(msgspec.Struct, frozen=True):
    """The runs that were made comparable: mine, the reference, and the reference once more with noise."""

    mine: Run
    reference: Run
    perturbed: Run | None


def compare_runs(
    mine: Run, reference: Run, aligned: Aligned | None, fixed: dict[str, str] | None = None, limits: str | None = None
) -> Comparison:
    """Compare two runs as they are, and the runs that were aligned where there are any. `fixed`: parameters whose counterparts
    are known. `limits`: why there are none that were aligned."""
    pairs = pair_runs(mine, reference, fixed)
    if aligned is not None:
        pairs = pair_runs(aligned.mine, aligned.reference, fixed) or pairs
    differences = [*what_alignment_hides(mine, reference, pairs)]
    # Compiled graphs hide clipping and losses, which aligned runs show; they are also looked at in every step.
    shown = (mine, reference) if aligned is None else (aligned.mine, aligned.reference)
    differences += settings_that_differ(*shown, pairs, exact=aligned is not None)
    own, expected = layers_of_both(mine, reference)
    curves = Curves(None, None, None, [])
    divergence = doubt = None
    if aligned is not None:
        half = coarsest(aligned.reference) if coarsest(aligned.reference) != "float32" else None
        perturbed = aligned.perturbed
        if perturbed is not None and not repeats(aligned.reference, perturbed):
            perturbed = None
        curves = compare_losses(aligned.mine, aligned.reference, perturbed, half=half)
        sides = Sides(aligned.mine, aligned.reference, perturbed, pairs, half=half)
        parting = forward(sides, _told_otherwise(pairs, differences))
        if parting is not None and parting.pair is None and curves.first is False:
            # The last operation may be the model's on one side and the loss's on the other: a sigmoid.
            parting = None
        doubt = why_not_fair(aligned.mine, aligned.reference)
        if doubt is None:
            doubt = _doubt(parting, sides) if parting is not None else _doubt_of_targets(aligned.mine, curves)
        if doubt is None:
            divergence = _first(sides, parting, curves, differences)
            if divergence is None:
                curves = msgspec.structs.replace(curves, parted=None)
        else:
            curves = Curves(None, None, None, curves.losses)
    divergence = _hidden(differences, "data", "init") or divergence or _hidden(differences, "forward")
    return Comparison(
        curves.first, curves.second, curves.parted, divergence, doubt or _verdict(curves, divergence),
        _unmatched(own, expected, pairs),
        pairs_as_rows(pairs), [_row(each) for each in differences], curves.losses, _limits(aligned, limits),
    )  # fmt: skip


def pair_runs(mine: Run, reference: Run, fixed: dict[str, str] | None = None) -> list[Pair]:
    return pair_layers(*layers_of_both(mine, reference), fixed)


def parameters_of(mine: Run, reference: Run, fixed: dict[str, str] | None = None) -> dict[str, str]:
    """My parameters and the reference's that take their place."""
    return all_parameters(*layers_of_both(mine, reference), fixed)


def what_alignment_hides(mine: Run, reference: Run, pairs: list[Pair]) -> list[Difference]:
    """Data and initial weights, as the scripts have them."""
    own, expected = ({_place(layer): layer for layer in layers} for layers in layers_of_both(mine, reference))
    # The same layers in the runs as they are, whose parameters have other numbers.
    natural = [
        Pair(own[_place(pair.mine)], expected[_place(pair.reference)], pair.confidence)
        for pair in pairs
        if _place(pair.mine) in own and _place(pair.reference) in expected
    ]
    return [
        *data_differences(mine, reference),
        *size_differences(mine, reference),
        *initial_differences(mine, reference, natural),
    ]


def _place(layer: Layer) -> tuple[str, str]:
    """Where a layer stands in its script, the first of those that were put together."""
    return layer.root, layer.module.path


def settings_that_differ(mine: Run, reference: Run, pairs: list[Pair], *, exact: bool) -> list[Difference]:
    """Everything that two runs were told otherwise, whether or not it matters. `exact`: rates are known at every step."""
    counterparts = parameter_pairs(pairs) | loose_pairs(*layers_of_both(mine, reference), pairs)
    schedule = schedule_difference(mine, reference, lasting=1 if exact else _LASTING)
    precision = precision_difference(mine, reference)
    optimizer = optimizer_differences(mine, reference, {own: first_of(other) for own, other in counterparts.items()})
    if schedule is not None and schedule.step == 0:
        schedule = None
    return [
        *tie_differences(mine, reference, counterparts),
        *layer_differences(pairs, mine.framework),
        *loss_differences(mine, reference),
        *gradient_differences(mine, reference, counterparts),
        *clip_differences(mine, reference),
        *optimizer,
        *([schedule] if schedule is not None else []),
        *([precision] if precision is not None else []),
    ]


def _told_otherwise(pairs: list[Pair], differences: list[Difference]) -> set[str]:
    """The paths of my layers that have other settings than their counterparts, ones that show in what they give."""
    names = {each.module for each in differences if each.subject == "layer" and not each.hidden}
    return {pair.mine.path for pair in pairs if pair.mine.module.name in names}


def _hidden(differences: list[Difference], *phases: str) -> Divergence | None:
    """What aligned runs do not show, of the first of these phases that has any."""
    found = [each for each in differences if each.hidden and each.phase in phases]
    found.sort(key=lambda each: phases.index(each.phase))
    if not found:
        return None
    first = found[0]
    return Divergence(
        max(first.step, 0), first.phase, first.module, first.reference_module, first.location, first.sentence, first.item,
        first.fix, [each.sentence for each in found[1:6]],
    )  # fmt: skip


def _doubt(parting: Parting, sides: Sides) -> str | None:
    """Why what is off says nothing: both sides have layers before it whose weights are not the same, or may be laid out
    otherwise."""
    mine, reference = without_counterpart(parting, sides)
    if not mine or not reference:
        after = parting.after
        if after is None or not (after.mine.parts or after.reference.parts) or other_operations(parting, sides) is not None:
            return None
        return (
            f"{after.mine.name} and the reference's {after.reference.name} give the same when they hold their parts one after "
            "the other. What is computed from that is not the same, and no operation explains it: the parts may be laid out "
            "otherwise, as by heads. What follows cannot be compared."
        )
    named = [", ".join(layer.name or layer.module.type for layer in layers[:4]) for layers in (mine, reference)]
    return (
        f"The weights of {named[0]} could not be put in the place of the reference's ({named[1]}): what follows them cannot be "
        "compared. Say which parameter is which with --map FILE (--write-map FILE writes what was found)."
    )


def _doubt_of_targets(mine: Run, curves: Curves) -> str | None:
    """Why another loss says nothing: the script computes it by itself from targets that nobody could replace."""
    alignment = mine.alignment
    if not curves.first or not alignment.get("without_targets"):
        return None
    return (
        "What the model gives is the same. The loss is computed from targets of the script's own, in the place of which the "
        "reference's could not be put: the loss and what follows it cannot be compared."
    )


def _first(sides: Sides, found: Parting | None, curves: Curves, differences: list[Difference]) -> Divergence | None:
    """The first thing that is off in runs that start the same: forward, loss, backward, update, and then the curves."""
    if found is not None:
        return explained(found, differences, sides)
    if curves.first:
        return _at_loss(sides, curves, differences)
    told_otherwise = any(each.subject in _OF_UPDATES for each in differences)
    found = backward(sides) or update(sides, told_otherwise=told_otherwise)
    if found is None and curves.second and not told_otherwise:
        found = first_off(sides, 1)
    found = found or running_statistics(sides, 1) or update(sides, 1, told_otherwise=told_otherwise)
    if found is not None:
        return explained(found, differences, sides)
    if curves.parted is None:
        return None
    schedule = next((each for each in differences if each.subject == "schedule" and each.step <= curves.parted), None)
    causes = [each for each in differences if each.subject in {"optimizer", "clip"} or each.setting == SIZE]
    cause = schedule or next(iter(causes), None)
    if cause is not None:
        step = cause.step if cause is schedule or cause.setting == SIZE else curves.parted
        return Divergence(
            step, cause.phase, None, None, cause.location, cause.sentence, cause.item, cause.fix,
            [f"The losses are apart from step {curves.parted} on."],
        )  # fmt: skip
    if not curves.sudden:
        return None
    return Divergence(
        curves.parted, "update", None, None, None, None, "api.01", "Compare what the scripts change in the course of training.",
        [f"The losses are apart from step {curves.parted} on; the first steps are the same."],
    )  # fmt: skip


def _at_loss(sides: Sides, curves: Curves, differences: list[Difference]) -> Divergence:
    step, own, expected = curves.losses[0]
    evidence = [f"Step {step}: the loss is {own:.6g}, in the reference {expected:.6g}; what the models give is the same."]
    last = next((pair for pair in reversed(sides.pairs) if pair.computes_the_same), None)
    cause = next((each for each in differences if each.subject == "loss"), None)
    if cause is not None:
        return Divergence(step, "loss", None, None, cause.location, cause.sentence, cause.item, cause.fix, evidence)
    told = other_operations(Parting(step, "loss", None, True, last, Distance(0.0, 0.0, 1.0), 0.0, "loss"), sides)  # noqa: FBT003
    if told is not None and told.by_settings:
        return Divergence(step, "loss", None, None, told.location, told.sentence, "cg.04", told.fix, evidence)
    calls = [call.location for call in sides.mine.loss_calls if call.grad]
    calls += [event.location for event in sides.mine.events_of("backward")]
    ratio = own / expected if own is not None and expected else None
    text = f"The loss is {ratio:.6g} times the reference's: look at its reduction and its terms." if ratio else None
    return Divergence(
        step, "loss", None, None, calls[0] if calls else None, text, "cg.04", "Compute the loss as the reference does.", evidence
    )


def _verdict(curves: Curves, divergence: Divergence | None) -> str:
    """What the losses say, as the guide puts it."""
    if curves.first is None:
        return "The losses of aligned runs are not known."
    if curves.first:
        return "The first loss differs: the forward pass, the loss, the data or the weights are not the same."
    if curves.second:
        return "The first loss is the same and the second differs: the backward pass or the update is not the same."
    if curves.parted is not None:
        return f"The first losses are the same; the curves part at step {curves.parted}."
    if divergence is not None:
        return "The losses of aligned runs do not part; what differs shows elsewhere."
    return (
        f"The losses do not part in {len(curves.losses)} steps: mine does what the reference does. "
        "If its accuracy is wrong, the reference very likely has the same problem."
    )


def _unmatched(own: list[Layer], expected: list[Layer], pairs: list[Pair]) -> list[dict[str, Any]]:
    """Layers without counterpart, but for those whose parameters have one in a layer of another kind."""
    loose = loose_pairs(own, expected, pairs)
    found = []
    for side, layers, taken, known in (
        ("mine", own, {(pair.mine.root, module.path) for pair in pairs for module in pair.mine.modules}, set(loose)),
        (
            "reference",
            expected,
            {(pair.reference.root, module.path) for pair in pairs for module in pair.reference.modules},
            set(loose.values()),
        ),
    ):
        found += [
            {
                "side": side, "module": layer.module.name, "kind": layer.module.kind, "type": layer.module.type,
                "parameters": len(layer.parameters),
            }
            for layer in layers
            if _place(layer) not in taken
            and not (layer.parameters and layer.named.keys() <= known)
        ]  # fmt: skip
    shapes = [
        _shapes(layers, {str(row["module"]) for row in found if row["side"] == side}) for side, layers in _both(own, expected)
    ]
    suggestions = fused_parameters(shapes[0], shapes[1]) + fused_parameters(shapes[1], shapes[0])
    return [*found, *({"side": "both", "module": None, "suggestion": text} for text in suggestions)]


def _both(own: list[Layer], expected: list[Layer]) -> list[tuple[str, list[Layer]]]:
    return [("mine", own), ("reference", expected)]


def _shapes(layers: list[Layer], names: set[str]) -> dict[str, tuple[int, ...]]:
    return {name: parameter.shape for layer in layers if layer.module.name in names for name, parameter in layer.named.items()}


def _row(difference: Difference) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(difference)
    row["location"] = (
        None if difference.location is None else {"file": difference.location.file, "line": difference.location.line}
    )
    return row


def _limits(aligned: Aligned | None, why: str | None) -> str:
    if aligned is None:
        only = "Only what both runs tell of themselves was compared: they start from other weights and have other batches."
        return only if why is None else f"{why} {only}"
    return (
        "Runs from the same weights and batches, without dropout, were compared tensor by tensor for two steps and by "
        f"their losses for {min(len(aligned.mine.steps), len(aligned.reference.steps))}."
    )
