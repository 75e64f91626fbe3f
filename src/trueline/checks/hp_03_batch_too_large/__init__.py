"""Batch too large

## What it checks
Whether the batches are so large that a run which sees its data many times makes too few steps to learn from it.

## Why it hurts accuracy
Each step costs a whole batch. Beyond a certain size a larger batch hardly improves the direction of the step, so that the same
number of epochs just makes fewer steps; unless the learning rate is raised along with it, the model stays undertrained.

## Method
All of these have to hold:

- batches of 256 samples or more, at most eight to an epoch, with at least eight epochs and 16 steps (40 steps when an epoch has
  fewer than 1000 samples);
- trained from scratch, with a loss that at the end is still above half of the cost of a constant guess, and falling: over the
  run (Mann-Kendall on block means, p < 0.001), and in the last third by at least half as much as in the third before, or,
  inside of it, by 3 % of the guess and about as quickly as inside of the third before;
- updates of at most 3 % of the weights: the learning rate was not raised to match;
- the gradient noise scale is below a quarter of the batch size, with its 95 % bound: |g|² and the product of the gradients of
  consecutive steps (by their sketches) tell signal from noise, and a quarter of the batch would point nearly the same way.

Hand-made batches that always hold all samples (graphs, small tables) are left alone: there is nothing to divide them into.

## Evidence
Batch size, steps and epochs, the noise scale and its bound, the loss at the end against a constant guess.

## Limits
Only the loss of steps is seen: that small batches generalise better is not. A large batch with which training gets where it
should is never reported.

## What to do
Take smaller batches (32 to 256), or raise the learning rate in proportion, with a warm-up, or train for more epochs.
"""

from __future__ import annotations

import math

import numpy as np

from trueline.checks.base import Item
from trueline.checks.hp_03_batch_too_large.noise_scale import noise_scale
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.curve import Curve, alternate, block_means, training_curves, trend
from trueline.views.order import Source, training_sources
from trueline.views.update_sizes import from_scratch, rate_at, rates, update_sizes

ITEM = Item(__name__, __doc__)
RANK = 70
CONSEQUENCES = ("hp.02",)
GAINS = ("gradients",)

_LARGE = 256
_FEW_BATCHES = 8
_FEWEST_EPOCHS = 8
_FEWEST_STEPS = 16
_FEWEST_STEPS_OF_SMALL = 40
_SMALL_EPOCH = 1000
_LITTLE_LEARNED = 0.5
_FALLING = 0.001
_STILL_FALLING = 0.5
_MATERIAL = 0.03
_NO_SLOWER = 0.75
_RAISED = 0.03
_MORE_THAN_NOISE = 4.0
_BLOCKS = 15


def conclude(run: Run) -> Finding:
    curves = training_curves(run)
    if not curves:
        return ITEM.not_applicable("No training by batches was seen.")
    sources = training_sources(run)
    if len(curves) > 1 or alternate(curves) or len(sources) != 1:
        return ITEM.not_checked("the steps of this run do not come from one optimizer and one source of batches.")
    curve, source = curves[0], sources[0]
    size = float(np.median([batch.size for epoch in source.epochs for batch in epoch.batches]))
    per_epoch = float(np.median([len(epoch.batches) for epoch in source.epochs]))
    if source.loader is None and per_epoch < 2:
        return ITEM.not_applicable("Every batch holds all samples, made by hand: there is nothing to divide.")
    if size < _LARGE:
        return ITEM.no_problem(
            f"The batches hold {size:.0f} samples.", limits=f"Batches below {_LARGE} samples are never too large.", confidence=0.9
        )
    if per_epoch > _FEW_BATCHES:
        return ITEM.no_problem(
            f"An epoch has {per_epoch:.0f} batches of {size:.0f} samples.",
            limits=f"Only epochs of at most {_FEW_BATCHES} batches are looked at.",
            confidence=0.6,
        )
    return _conclude_large(run, curve, source, size, per_epoch)


def _conclude_large(run: Run, curve: Curve, source: Source, size: float, per_epoch: float) -> Finding:
    epochs, steps = len(source.epochs), len(curve.steps)
    needed = _FEWEST_STEPS if size * per_epoch >= _SMALL_EPOCH else _FEWEST_STEPS_OF_SMALL
    if curve.guess is None or curve.first_broken is not None:
        return ITEM.not_checked("what a constant guess costs is not known for this loss, or the loss is no finite number.")
    if epochs < _FEWEST_EPOCHS or steps < needed or not from_scratch(run, curve):
        return ITEM.not_checked(f"{epochs} epochs with {steps} steps are too few, or the weights were not trained from scratch.")
    end = float(curve.losses[-max(steps // 10, 3) :].mean())
    if end < _LITTLE_LEARNED * curve.guess or not _still_falls(curve):
        return ITEM.no_problem(
            f"With batches of {size:.0f} samples the loss came down to {end:.3g}, or falls no more.",
            limits=f"Seen: a loss above {_LITTLE_LEARNED:.0%} of a constant guess's ({curve.guess:.3g}) that is still falling.",
            confidence=0.7,
        )
    update = float(np.median([one.typical for one in update_sizes(run, curve)] or [math.inf]))
    noise = noise_scale(run, curve, size)
    if noise is None or update > _RAISED:
        return ITEM.not_checked("no gradients of consecutive steps were sketched, or the steps are large already.")
    if noise.bound * _MORE_THAN_NOISE > size:
        return ITEM.no_problem(
            f"The batch of {size:.0f} samples is not far above the gradient noise scale ({noise.value:.0f}).",
            limits=f"A batch {_MORE_THAN_NOISE:g} times the noise scale's upper bound would have been seen.",
            confidence=0.6,
        )
    rate = rate_at(rates(run, curve.optimizer), curve.steps[0].id)
    told = "" if rate is None else f" at a learning rate of {rate:.3g}"
    return ITEM.problem(
        f"The batches are too large: {size:.0f} samples make {per_epoch:.0f} step{'s' if per_epoch > 1 else ''} per epoch{told}, "
        f"and after {epochs} epochs the loss is {end:.3g}, still falling (a constant guess costs {curve.guess:.3g}).",
        confidence=0.7,
        evidence=[
            Evidence(f"{steps} steps in {epochs} epochs.", {"batch_size": size, "steps": steps, "epochs": epochs}),
            Evidence(
                f"Gradient noise scale {noise.value:.0f} samples, below {noise.bound:.0f} (95 % bound, {noise.pairs} pairs of "
                "steps): a quarter of the batch would give nearly the same direction.",
                {"noise_scale": noise.value, "bound": noise.bound, "pairs": noise.pairs},
            ),
            Evidence(
                f"Loss {curve.losses[0]:.4g} at the first step, {end:.4g} at the end; updates of {update:.2g} times the weights.",
                {"first": float(curve.losses[0]), "end": end, "guess": curve.guess, "update_to_weight": update},
            ),
        ],
        fix="Take batches of 32 to 256 samples, or raise the learning rate in proportion to the batch size, with a warm-up.",
        location=source.location if source.loader is None else source.loader.line_of("Batch"),
        limits=f"Seen: a batch above {_MORE_THAN_NOISE:g} times the noise scale while the loss is above {_LITTLE_LEARNED:.0%} of "
        "a constant guess's and still falling.",
    )


def _still_falls(curve: Curve) -> bool:
    tau, chance = trend(block_means(curve.losses, _BLOCKS))
    thirds = np.array_split(curve.losses, 3)
    first, middle, last = (float(part.mean()) for part in thirds)
    # A plateau after a quick start that training is on its way to leave.
    _, before, now = (-float(np.polyfit(np.arange(len(part)), part, 1)[0]) * len(part) for part in thirds)
    leaving = curve.guess is not None and now >= _MATERIAL * curve.guess and now >= _NO_SLOWER * before
    return tau < 0 and chance < _FALLING and (middle - last >= _STILL_FALLING * (first - middle) or leaving)
