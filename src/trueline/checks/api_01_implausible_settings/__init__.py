"""API difference: a setting that means something else here

## What it checks
The settings of layers, losses and optimizers, one by one, for values that are usual in another framework, or under another
convention, and wrong in this one: the momentum of batch normalisation, keep probabilities given to dropout, an eps that is no
eps, swapped betas, a softmax over the samples of a batch. No reference run is needed.

## Why it hurts accuracy
The same number has another meaning. A batch normalisation whose momentum of 0.9 comes from MindSpore or Keras keeps hardly
more than its last batch here, and evaluation is off. A keep probability of 0.9 given to dropout drops 90 % of all units.
Nothing fails; the model is worse than the one that was ported.

## Method
Each rule is a fact of the documented formula. What is merely unusual stays quiet.

- *BatchNorm momentum* from 0.9 to below 1: running = (1 - momentum) · running + momentum · batch, so that at 0.9 the last batch
  alone makes up 90 % of the statistics that evaluation uses. MindSpore's and Keras' 0.9, 0.99, 0.997 are 0.1, 0.01, 0.003 here.
- *Dropout* of 0.8 or more, functional or as a layer (recurrent and attention layers too): the number is the share that is
  *dropped*. Dropout on the input itself (denoising) is left alone.
- *Norm eps* of 0.1 or more, added to a variance that is about 1; from 0.01 on when the layer's first output shows it (standard
  deviation below 0.5 where it must be about 1). Left alone where several models are trained against each other: a well-known
  family of GAN scripts has it.
- In MindSpore momentum is the weight of the *old* statistics (0.1 there keeps a tenth of them), and the first argument of Dropout
  is the share that is *kept*: given without a name, less than a half is taken for the other framework's.
- *Convolutions* of a MindSpore network that are all left at their defaults: padded and without bias, which PyTorch's are not,
  and with no normalisation in the network that has a bias of its own. Other defaults that differ are told as evidence.
- *LeakyReLU slope* of 1 or more: at 1 the function is the identity.
- *Label smoothing* of 0.5 or more: the label itself then has less weight than the smoothing.
- *Softmax over the first axis* of two or more samples, inside a model: the samples of a batch share one budget of weight.
- *Optimizers*: Adam's betas swapped (beta1 above beta2 and 0.98 or more; the method needs beta1 < sqrt(beta2)); SGD momentum of 1
  or more (the velocity never decays); dampening of 1 or more with momentum (new gradients do not count); weight decay of 0.5
  or more added to the gradient, or shrinking weights by 10 % or more per step (lr · weight_decay).

## Evidence
The setting, its formula with the numbers put in, the layers that have it, and how it came to be used.

## Limits
Settings are judged one by one, without a reference: a value that is plausible in itself and differs from the original's is
not seen. Initialisation is judged in wi.01.

## What to do
Translate the setting into this framework's convention, or leave its default in place.
"""

from __future__ import annotations

from trueline.checks.api_01_implausible_settings.framework_defaults import convolutions_at_defaults, other_defaults
from trueline.checks.api_01_implausible_settings.odd_layers import (
    Oddity,
    batch_norm_momentum,
    dropped_shares,
    leaky_slopes,
    norm_eps,
    softmax_over_samples,
)
from trueline.checks.api_01_implausible_settings.odd_optimizers import label_smoothing, optimizer_settings
from trueline.checks.base import Item
from trueline.model import Evidence, Finding
from trueline.store import Run

ITEM = Item(__name__, __doc__)
RANK = 28
CONSEQUENCES = ("tr.05", "hp.01", "hp.02", "api.02")
GAINS = ("operations",)


def conclude(run: Run) -> Finding:
    if not run.events_of("backward"):
        return ITEM.not_applicable("The run has no backward pass: nothing was trained.")
    rules = (
        batch_norm_momentum, dropped_shares, norm_eps, softmax_over_samples, leaky_slopes, label_smoothing, optimizer_settings,
        convolutions_at_defaults,
    )  # fmt: skip
    odd: list[Oddity] = [found for rule in rules for found in rule(run)]
    looked_at = f"{sum(bool(module.settings) for module in run.modules.values())} modules and {len(run.optimizers)} optimizers"
    limits = (
        f"Looked at the settings of {looked_at}. Would have seen a BatchNorm momentum from 0.9, a dropout from 0.8, a norm eps "
        "from 0.1, a slope from 1, label smoothing from 0.5, swapped betas, a momentum from 1 and a weight decay from 0.5."
    )
    if not odd:
        unseen = "operations" in run.unseen
        if unseen:
            limits += " What runs inside of compiled graphs without being a layer (functional dropout, softmax) was not seen."
        differing = other_defaults(run)
        return ITEM.no_problem(
            f"The settings of {looked_at} are plausible in this framework.",
            limits=limits,
            evidence=[Evidence(f"Left at defaults that differ from PyTorch's: {differing}.")] if differing else [],
            confidence=0.7 if unseen else 0.8,
        )
    worst = max(odd, key=lambda one: one.confidence)
    return ITEM.problem(
        worst.summary,
        confidence=worst.confidence,
        evidence=[evidence for one in sorted(odd, key=lambda one: -one.confidence) for evidence in one.evidence][:8],
        fix=worst.fix,
        location=worst.location,
        limits=limits,
    )
