"""Ranks drift apart

## What it checks
In a run over several ranks, whether all ranks train one model: the same weights at the beginning, the same gradients at every
optimizer step, and the same weights ever after.

## Why it hurts accuracy
Data-parallel training averages the gradients of all ranks. Where that fails, every rank trains a model of its own on its
share of the data, and the one that is saved has seen only that share. Where the weights differ from the start, averaged
gradients belong to none of the models.

## Method
The ranks' records are put side by side. Parameters are matched by path and shape; weights are compared by content (a hash, and
where hashes differ, minimum, maximum, mean, spread and length to one part in 100,000) before training and at every step that
all ranks sampled, gradients likewise at the optimizer step. What differs first tells the cause:

- weights before the first step: loaded, initialised or seeded differently, and never broadcast;
- gradients at a step before which the weights were equal: the raw module called although a `DistributedDataParallel` was built,
  `no_sync` at an optimizer step, clipping on some ranks only, parameters left out of the averaging, averaging of a copy or
  after the step, or no averaging at all;
- neither: hyper-parameters that differ between ranks, or optimizer steps on some ranks only.

Gradients that are summed over ranks and never divided are told by the size of what the sum gave against what the optimizer
took, for optimizers whose update grows with the gradient.

Left alone: ranks that form no process group, models that are split over ranks (FSDP, pipelines, experts, tensor parallelism),
weights that are brought together again later (local SGD), buffers (running statistics of BatchNorm differ by design), and
ranks of which nothing shows that they should train one model.

## Evidence
The parameters and the step at which ranks differ first, how many differ then and at the end, what was called on which rank.

## Limits
Needs the record of every rank: start with `trueline run torchrun … train.py` (or `torchrun … -m trueline run train.py`), with
`trueline run msrun … train.py` for MindSpore. Differences below one part in 100,000 are taken for rounding. Gradients inside of
compiled MindSpore steps are not seen: there the weights tell that ranks part, and what the step holds tells why.

## What to do
Wrap the model in `DistributedDataParallel` after it has its initial weights and call the wrapper; give every parameter that
is trained to it; do the same on every rank between backward and step. In MindSpore: `nn.DistributedGradReducer` between the
gradient function and the optimizer, or `Model` with `ParallelMode.DATA_PARALLEL` and `gradients_mean=True`; the same seed, or the
weights of rank 0 broadcast.
"""

from __future__ import annotations

from contextlib import closing

from trueline.checks.base import Item
from trueline.checks.tr_04_ranks_drift.drift_causes import Cause, cause_of_drift
from trueline.checks.tr_04_ranks_drift.gradient_sum import sum_inside_of_graph, undivided_sum
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.ranks import Ranks, unrecorded_ranks
from trueline.views.shards import have_shards

item = Item(__name__, __doc__)

CONSEQUENCES = ("hp.01", "hp.02", "tr.08")
RANK = 26


def conclude(run: Run) -> Finding:
    if len(run.ranks) < 2:
        if (missing := unrecorded_ranks(run)) is not None:
            return item.not_checked(missing)
        return item.not_applicable("One process trains: there are no ranks to drift apart.")
    with closing(Ranks(run)) as ranks:
        return _conclude(ranks)


def _conclude(ranks: Ranks) -> Finding:
    if not ranks.trains:
        return item.not_applicable("Only one of the recorded ranks trains.")
    if not ranks.form_a_group:
        return item.not_applicable("The processes form no process group: each of them trains for itself.")
    if ranks.split_the_model:
        return item.not_applicable("The model is split over the ranks: they hold different parts of it by design.")
    most = max(len(keyed) for keyed in ranks.parameters.values())
    if len(ranks.common) * 2 < most:
        return item.not_applicable("The ranks train different models.")
    steps = ranks.shared_steps
    if not [step for step in steps if step > 0]:
        return item.not_checked("no step after the first update was sampled on all ranks.")
    differing = {step: ranks.weights_differ(step) for step in steps}
    apart = [step for step, keys in differing.items() if keys]
    if not apart:
        return _together(ranks, steps)
    together_again = [step for step in steps if step > apart[0] and not differing[step]]
    if together_again and apart[-1] <= ranks.made_equal and together_again[-1] == steps[-1]:
        # A compiled step is looked at before it starts, and begins with the broadcast.
        return _together(ranks, [step for step in steps if step > apart[-1]])
    if together_again and apart[-1] >= 0:
        return item.no_problem(
            f"The ranks part and are brought together again (first at step {together_again[0]}): local training with averaging.",
            limits=_limits(ranks, steps), confidence=0.7,
            evidence=[Evidence(f"{len(differing[apart[0]])} parameters differ at step {apart[0]}, none at {together_again[0]}.")],
        )  # fmt: skip
    if together_again:
        return _together(ranks, steps)
    if any(event.step > 0 for events in ranks.reductions_of("parameter").values() for event in events):
        return item.not_checked("the script averages weights itself, and no step was sampled right after it.")
    return _judge(ranks, steps, differing)


def _judge(ranks: Ranks, steps: list[int], differing: dict[int, list[tuple[str, tuple[int, ...], int]]]) -> Finding:
    meant = ranks.averages or have_shards(ranks)
    if not meant:
        return item.not_checked("the ranks train different weights, and nothing shows that they should train one model.")
    cause = cause_of_drift(ranks, differing)
    last = differing[steps[-1]]
    evidence = [
        Evidence(
            f"{len(last)} of {len(ranks.common)} parameters differ between the ranks at step {steps[-1]}, "
            f"first at step {next(step for step in steps if differing[step])}.",
            {"parameters": [name for name, _, _ in last[:10]], "last_step": steps[-1]},
        ),
        *cause.evidence,
    ]
    return _problem(cause, evidence, _limits(ranks, steps))


def _problem(cause: Cause, evidence: list[Evidence], limits: str) -> Finding:
    return item.problem(
        cause.summary, confidence=cause.confidence, evidence=evidence, location=cause.location, fix=cause.fix, limits=limits
    )


def _together(ranks: Ranks, steps: list[int]) -> Finding:
    summed = undivided_sum(ranks)
    if summed is not None:
        return _problem(summed, summed.evidence, _limits(ranks, steps))
    if sum_inside_of_graph(ranks):
        return item.not_checked(
            f"all {len(ranks.runs)} ranks hold the same weights, but compiled steps sum the gradients over them (gradients_mean "
            "is off), and whether something divides the sum again cannot be seen: an update may be that many times too long."
        )
    return item.no_problem(
        f"All {len(ranks.runs)} ranks hold the same weights at each of {len(steps)} moments up to step {steps[-1]}.",
        limits=_limits(ranks, steps),
        confidence=0.95,
    )


def _limits(ranks: Ranks, steps: list[int]) -> str:
    return (
        f"A difference of one part in 100,000 in any of {len(ranks.common)} parameters at one of {len(steps)} "
        "shared moments, the "
        f"last of them step {steps[-1]}, would have been seen."
    )
