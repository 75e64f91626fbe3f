"""Why gradients differ where all that is computed forwards is the same: frozen parameters, gradients that are cut off, sums of
several batches that are not divided."""

from __future__ import annotations

import math

from trueline.compare.runs.difference import Difference
from trueline.compare.runs.layers import learnt_by_name
from trueline.model import Location, Op
from trueline.store import Run
from trueline.store.joined_names import first_of
from trueline.views.dataflow import Trace, is_in, line_of, plain

_STEP_OF_TRACE = 0
_CUTS = frozenset({"detach", "detach_", "data", "stop_gradient"})
# The setting of what is seen in the size of all gradients together.
SIZE = "size"
# How near the sizes of gradients are, also in half precision, when one is that of a sum and the other that of an average.
_NEARLY = 0.02


def gradient_differences(mine: Run, reference: Run, parameters: dict[str, str]) -> list[Difference]:
    """`parameters`: mine, and the reference's that take their place."""
    return [*_frozen(mine, reference, parameters), *_cut_off(mine, reference), *_not_divided(mine, reference)]


def _frozen(mine: Run, reference: Run, parameters: dict[str, str]) -> list[Difference]:
    own, expected = learnt_by_name(mine), learnt_by_name(reference)
    found = []
    for name, other in parameters.items():
        a, b = own.get(name), expected.get(first_of(other))
        if a is None or b is None or a.trainable == b.trainable:
            continue
        module = mine.modules[a.module]
        words = ("is trained", "is frozen") if a.trainable else ("is frozen", "is trained")
        found.append(
            Difference(
                "gradient", "trainable", a.trainable, b.trainable, "backward", "cg.02",
                f"{a.path} {words[0]} (requires_grad {a.trainable}), in the reference {b.path} {words[1]}.",
                f"Let {a.path} be {'trained' if b.trainable else 'frozen'} as in the reference.", module.name,
                reference.modules[b.module].name, module.built or module.called,
            )
        )  # fmt: skip
    return found


def _cut_off(mine: Run, reference: Run) -> list[Difference]:
    """Operations that let no gradient through on the way to the loss, where one side has more of them."""
    own, expected = _cuts(mine), _cuts(reference)
    if len(own) == len(expected):
        return []
    here, there = (_lines(run, cuts) for run, cuts in ((mine, own), (reference, expected)))
    if len(own) > len(expected):
        op = own[0]
        sentence = f"`{_called(mine, op)}` cuts the gradient off at {_listed(here)}; the reference does so at {_listed(there)}."
        fix = f"Let the gradient through where the reference does: look at {_listed(here)}."
    else:
        op = expected[0]
        sentence = (
            f"The reference cuts the gradient off with `{_called(reference, op)}` at {_listed(there)}; "
            f"mine does so at {_listed(here)}."
        )
        fix = f"Cut the gradient off as the reference does at {_listed(there)}."
    module = mine.modules.get(own[0].module) if own and own[0].module is not None else None
    return [
        Difference(
            "gradient", "cut off", len(own), len(expected), "backward", "cg.02", sentence, fix,
            module.name if module is not None and module.path else None, None, here[0] if here else None,
        )
    ]  # fmt: skip


def _not_divided(mine: Run, reference: Run) -> list[Difference]:
    """Gradients of several batches that one side adds up and the other averages. Clipping hides it: the size before tells."""
    sizes = [_size_before_clipping(run) for run in (mine, reference)]
    counts = [run.steps[0].backwards if run.steps else 0 for run in (mine, reference)]
    if sizes[0] is None or not sizes[1] or counts[0] != counts[1] or counts[0] < 2:
        return []
    count, factor = counts[0], sizes[0] / sizes[1]
    if math.isclose(factor, count, rel_tol=_NEARLY):
        words, fix = "are added up", f"Divide the loss of each batch by {count}, as the reference does."
    elif math.isclose(factor, 1 / count, rel_tol=_NEARLY):
        words, fix = "are averaged", "Do not divide the losses: the reference adds their gradients up."
    else:
        return []
    sentence = (
        f"The gradients of {count} batches {words}: together they are {factor:.4g} times the reference's "
        f"(norm {sizes[0]:.4g}, in the reference {sizes[1]:.4g}, before clipping)."
    )
    line = next((event.location for event in mine.events_of("backward") if event.location is not None), None)
    return [Difference("gradient", SIZE, sizes[0], sizes[1], "backward", "tr.08", sentence, fix, None, None, line)]


def _size_before_clipping(run: Run) -> float | None:
    """The norm of all gradients in the first step."""
    clipped = next((event for event in run.events_of("clip") if event.step == _STEP_OF_TRACE), None)
    if clipped is not None:
        return clipped.value
    return run.steps[0].grad_norm if run.steps else None


def _cuts(run: Run) -> list[Op]:
    trace = Trace(run)
    way = trace.loss_ancestors
    return [op for op in trace.ops.values() if op.step == _STEP_OF_TRACE and op.seq in way and is_in(op, _CUTS)]


def _called(run: Run, op: Op) -> str:
    """What the script calls it: adapters have one name for it."""
    return "stop_gradient" if run.framework == "mindspore" else plain(op.name)


def _lines(run: Run, cuts: list[Op]) -> list[Location]:
    found = [line for op in cuts if (line := line_of(run, op)) is not None]
    return list({str(line): line for line in found}.values())


def _listed(lines: list[Location]) -> str:
    return ", ".join(map(str, lines[:3])) or "no place"
