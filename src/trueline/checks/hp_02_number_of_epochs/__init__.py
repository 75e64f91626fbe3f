"""Too many or too few epochs

## What it checks
Whether training went on long after the validation loss had passed its minimum, or ended while the model had learned only a
small part and was still learning at full speed.

## Why it hurts accuracy
After the minimum the model learns the training samples by heart and gets worse on all others. Before it, it has not yet
learned what the data can teach.

## Method
Losses computed outside of training are grouped into evaluations (no step in between) of the same line on the same samples; where
evaluation computes no loss, the margins of its predictions give one. Sets that are trained on as well do not count.

- *Too many*: at least 12 evaluations, of which six or more follow the minimum; from the minimum on the validation loss rises
  (Mann-Kendall, one-sided p < 0.01) by more than four times the standard error of its own scatter, to more than 1.2
  times the minimum, and it loses at least half of what had been gained (the gain counts from the first evaluation or the
  cost of a constant guess, whichever is higher), while the training loss falls by a tenth or more. A run that loads weights
  back after its last step, or saves a checkpoint right after its best evaluation, keeps its best epoch, and is right.
- *Too few*: one to ten epochs with at least 60 steps from scratch; the loss still is above 75 % of a constant guess's, in
  training and on held-out data that still improves (a single evaluation: less than 70 % right); it falls over the run
  (Mann-Kendall on 15 block means, p < 0.001), and fell by as much in the last third of the steps as in the third before (no
  less within two standard errors, and more than two above zero); the steps are of usual size; and the learning rate was not
  run down to its end.

## Evidence
The best evaluation and its epoch, the losses there and at the end, the trend's p-value, the training loss.

## Limits
Short runs are not judged. Weights of the best epoch that are kept in memory only count when they are loaded back. What the
last epochs were worth on another test set is not known.

## What to do
Stop at the best epoch and keep its weights, or regularise the model; with too few, train on until validation no longer improves.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from trueline.checks.base import Item
from trueline.checks.hp_02_number_of_epochs.epoch_loop import epoch_loop
from trueline.checks.hp_02_number_of_epochs.validation_curve import Validation, noise_of, validations
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.curve import Curve, block_means, training_curves, trend
from trueline.views.order import training_sources
from trueline.views.update_sizes import from_scratch, rates, update_sizes

ITEM = Item(__name__, __doc__)
RANK = 75

_FEWEST_EVALUATIONS = 12
_FEWEST_AFTER = 6
_TREND = 0.01
_BEYOND_SCATTER = 4.0
_HIGHER = 1.2
_LOST = 0.5
_TRAINING_FELL = 0.9
_FEWEST_STEPS = 60
_MOST_EPOCHS = 10
_LITTLE_LEARNED = 0.75
_POOR = 0.7
_STILL_STRAIGHT = 0.5
_LATELY_FALLING = 2.0
_FALLING = 0.001
_BLOCKS = 15
_USUAL_UPDATE = 3e-4
_RUN_DOWN = 0.3
_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".tar", ".bin", ".safetensors", ".pkl")
# More classes than this are a vocabulary: what a language model can reach is far above zero.
_MOST_CLASSES = 100


class _Overfit(msgspec.Struct, frozen=True):
    best: int
    lowest: float
    end: float
    rise: float
    lost: float
    chance: float
    training: tuple[float, float]


def conclude(run: Run) -> Finding:
    curves = training_curves(run)
    if not curves:
        return ITEM.not_applicable("No training by epochs was seen.")
    if len(curves) > 1:
        return ITEM.not_checked("several optimizers share the training: no single curve tells when it is done.")
    curve = curves[0]
    if curve.first_broken is not None:
        return ITEM.not_checked("the loss is no finite number at some steps.")
    series = validations(run, curve)
    long_enough = [one for one in series if len(one.steps) >= _FEWEST_EVALUATIONS]
    for one in long_enough:
        overfit = _passed_minimum(one, curve)
        if overfit is not None:
            kept = _best_restored(run, curve) or _best_saved(run, int(one.steps[overfit.best]))
            return _restored(one, overfit) if kept else _problem_many(run, one, overfit)
    few = _too_few(run, curve, series)
    if few is not None:
        return few
    if not long_enough:
        return ITEM.not_checked(
            f"{max((len(one.steps) for one in series), default=0)} evaluations on held-out data are too few to see a minimum "
            f"({_FEWEST_EVALUATIONS} are needed)."
        )
    return _nothing_found(long_enough[0])


def _passed_minimum(one: Validation, curve: Curve) -> _Overfit | None:
    best = int(np.argmin(one.losses))
    after = one.losses[best:]
    if len(after) <= _FEWEST_AFTER or one.losses[best] <= 0:
        return None
    # The mean around the minimum: the lowest of noisy values alone is lower than the curve.
    lowest = float(one.losses[max(0, best - 1) : best + 2].mean())
    end = float(one.losses[-3:].mean())
    error = noise_of(one.losses) * math.sqrt(2 / 3)
    tau, chance = trend(after)
    gained = max(float(one.losses[0]), curve.guess or 0.0) - lowest
    lost = (end - lowest) / gained if gained > 0 else math.inf
    training = float(np.nanmean(one.training[max(0, best - 1) : best + 2])), float(np.nanmean(one.training[-3:]))
    rises = tau > 0 and chance / 2 < _TREND and end - lowest > _BEYOND_SCATTER * error
    large = end > _HIGHER * lowest and lost >= _LOST
    if not (rises and large and training[1] < _TRAINING_FELL * training[0]):
        return None
    return _Overfit(best, lowest, end, end - lowest, lost, chance / 2, training)


def _best_restored(run: Run, curve: Curve) -> bool:
    """Whether weights were loaded after the last step: the best ones, kept until then."""
    return any(event.seq > curve.steps[-1].seq for event in run.events_of("load"))


def _best_saved(run: Run, step: int) -> bool:
    """Whether a checkpoint was written between the best evaluation and the next training step."""
    return any(
        event.step == step and str(event.detail.get("path", "")).endswith(_CHECKPOINTS) for event in run.events_of("file_written")
    )


def _evidence(one: Validation, overfit: _Overfit) -> list[Evidence]:
    step = int(one.steps[overfit.best])
    return [
        Evidence(
            f"The validation loss is lowest at evaluation {overfit.best + 1} of {len(one.steps)} ({overfit.lowest:.4g}) and "
            f"{overfit.end:.4g} at the end: rising with p = {overfit.chance:.1g}, {overfit.lost:.0%} of the gain lost.",
            {"best": overfit.best + 1, "of": len(one.steps), "lowest": overfit.lowest, "end": overfit.end, "p": overfit.chance},
            step,
        ),
        Evidence(
            f"In the same time the training loss went from {overfit.training[0]:.4g} to {overfit.training[1]:.4g}.",
            {"training_at_best": overfit.training[0], "training_at_end": overfit.training[1]},
        ),
    ]


def _problem_many(run: Run, one: Validation, overfit: _Overfit) -> Finding:
    return ITEM.problem(
        f"Too many epochs: the validation loss was lowest after epoch {overfit.best + 1} of {len(one.steps)} "
        f"({overfit.lowest:.3g}), and has risen to {overfit.end:.3g} since, while the training loss fell.",
        confidence=0.85 if overfit.lost >= 1 else 0.7,
        evidence=_evidence(one, overfit),
        fix=f"Stop after about {overfit.best + 1} epochs, or keep the weights of the best epoch and load them at the end; weight "
        "decay, dropout, augmentation or more data move the minimum further out.",
        location=epoch_loop(run),
        limits=f"A rise of {_HIGHER - 1:.0%} above the minimum that loses half of the gain would have been seen.",
    )


def _restored(one: Validation, overfit: _Overfit) -> Finding:
    return ITEM.no_problem(
        f"The validation loss was lowest at evaluation {overfit.best + 1} of {len(one.steps)}, and its weights were saved, or "
        "loaded back at the end.",
        limits="That the weights in use are those of the best evaluation is taken for granted.",
        confidence=0.7,
        evidence=_evidence(one, overfit),
    )


def _too_few(run: Run, curve: Curve, series: list[Validation]) -> Finding | None:
    """A model that had learned little and was still learning as fast as before when training ended."""
    guess, count = curve.guess, len(curve.losses)
    epochs = _epochs(run)
    if guess is None or count < _FEWEST_STEPS or epochs is None or epochs > _MOST_EPOCHS or not from_scratch(run, curve):
        return None
    if curve.classes is not None and curve.classes > _MOST_CLASSES:
        return None
    first, middle, last = np.array_split(curve.losses, 3)
    error = math.sqrt(sum(float(part.var(ddof=1)) / len(part) for part in (middle, last)))
    before, lately = float(first.mean() - middle.mean()), float(middle.mean() - last.mean())
    end = float(curve.losses[-max(count // 10, 5) :].mean())
    tau, chance = trend(block_means(curve.losses, _BLOCKS))
    falls = tau < 0 and chance < _FALLING and lately > _LATELY_FALLING * error
    straight = lately + _LATELY_FALLING * error >= before and lately >= _STILL_STRAIGHT * before
    if not falls or not straight or end < _LITTLE_LEARNED * guess or float(curve.losses[0]) > 2 * guess:
        return None
    known = [float(one.value) for one in rates(run, curve.optimizer)]
    sizes = update_sizes(run, curve)
    if (known and known[-1] < _RUN_DOWN * max(known)) or not sizes or np.median([one.typical for one in sizes]) < _USUAL_UPDATE:
        return None
    # What a demonstration of a few epochs leaves unlearned is no fault by itself: held-out data must say the same.
    if not _held_out_agrees(run, curve, series, guess):
        return None
    return ITEM.problem(
        f"Too few epochs: after {epochs} the loss is {end:.3g}, where a constant guess costs {guess:.3g}, and was still falling "
        "as fast as before.",
        confidence=0.65,
        evidence=[
            Evidence(
                f"Over the thirds of {count} steps the loss fell by {before:.3g}, then {lately:.3g} (standard error "
                f"{error:.2g}); trend p = {chance:.1g}.",
                {"first_fall": before, "last_fall": lately, "error": error, "p": chance, "steps": count, "epochs": epochs},
            ),
            Evidence(f"The last losses are {end / guess:.0%} of the cost of a constant guess.", {"end": end, "guess": guess}),
        ],
        fix="Train for more epochs, until the validation loss no longer falls.",
        location=epoch_loop(run),
        limits=f"Seen only while the loss is above {_LITTLE_LEARNED:.0%} of a constant guess's and falls as fast as before.",
    )


def _held_out_agrees(run: Run, curve: Curve, series: list[Validation], guess: float) -> bool:
    """Whether evaluation still improves and is poor as well; a single one at the end by the share that is judged right."""
    if series:
        losses = series[0].losses
        return float(losses[-1]) >= _LITTLE_LEARNED * guess and (len(losses) < 2 or losses[-1] < losses[-2])
    final = [scores for scores in run.scores if not scores.training and scores.seq > curve.steps[-1].seq]
    right = [margin > 0 for scores in final for margin in scores.margins]
    return bool(right) and sum(right) < _POOR * len(right)


def _epochs(run: Run) -> int | None:
    sources = training_sources(run)
    if len(sources) != 1 or not sources[0].returns or sources[0].is_drawn:
        return None
    return len(sources[0].epochs)


def _nothing_found(one: Validation) -> Finding:
    best = int(np.argmin(one.losses))
    return ITEM.no_problem(
        f"The validation loss is lowest at evaluation {best + 1} of {len(one.steps)} ({one.losses[best]:.3g}) and "
        f"{one.losses[-1]:.3g} at the end.",
        limits=f"A rise of {_HIGHER - 1:.0%} above the minimum that loses half of the gain, over {_FEWEST_AFTER} evaluations, "
        "would have been seen.",
        confidence=0.75,
        evidence=[Evidence(f"{len(one.steps)} evaluations of {one.samples} samples.", {"best": best + 1, "of": len(one.steps)})],
    )
