"""Exploding or vanishing gradients, dead or saturated units

## What it checks
Whether the gradients reach all layers in a usable size while a network is trained: not vanishing on their way to the first
layers, not exploding, not stopped by rectified units that never fire or by activations at the flat ends of their range.

## Why it hurts accuracy
Layers that get no gradient keep their initial weights, and the layers after them learn from noise. Gradients that explode
throw the weights away at the first unlucky batch.

## Method
All of it is looked at only in runs that do not learn: after at least 30 steps the second half's mean loss is at least 0.9 of the
cost of a constant guess (entropy of the labels, spread of the targets), or, where that is not known, 0.95 of the first losses.
A network that learns in spite of sparse or small gradients is healthy. Judged at the sampled steps of the second half:

- *Dead*: at least 90 % of the units of a hidden linear or convolution layer get a gradient of exactly zero at all of these
  steps, while the network as a whole still gets one. What never fires in whole batches cannot recover.
- *Saturated*: the mean derivative of a sigmoid or tanh between two layers is below 2 % of its steepest value in 9 of 10
  samples. It follows from the mean and spread of the outputs: E[y - y²], E[1 - y²].
- *Vanishing*: with four or more layers, the relative gradient (length over that of the weight) of the first layer is below
  1/1000 of the last one's, and falls along the depth (Kendall's tau at least 0.6): the product of many factors below one.
- *Exploding*: the first loss is ten or more times a guess's, and the layers' outputs grow 100-fold or more along the depth
  (those of a recurrent layer to above 1000); or the gradient's norm jumps to 100 times its median again and again; or it is
  infinite while the loss is not.

## Evidence
Gradient lengths along the depth, shares of dead units, mean derivatives, norms before and at a jump.

## Limits
Runs that learn are not judged, nor those of several optimizers that take turns. Gradients that vanish over time inside of a
recurrent layer are not told apart from other reasons not to learn. Sparse embeddings are left out.
One of several optimizers whose steps cannot be judged leaves the item not checked.

## What to do
Vanishing and saturated: rectified activations, normalisation, residual connections, weights of the usual size (kaiming or
xavier). Dead: a smaller learning rate, usual biases, a leaky activation. Exploding: clip the gradient's norm, smaller weights.
"""

from __future__ import annotations

import math

import numpy as np

from trueline.checks.base import Item
from trueline.checks.parts import Part, worst_of
from trueline.checks.tr_05_gradient_flow.gradient_flow import Flow, Layer
from trueline.model import Evidence, Finding, Location
from trueline.store import Run
from trueline.views.curve import Curve, alternate, training_curves, trend
from trueline.views.parameters import listed, name_of_optimizer
from trueline.views.words import either, words_of

ITEM = Item(__name__, __doc__)
NEEDS = ("gradients", "layers")
RANK = 65
CONSEQUENCES = ("mp.01", "hp.02", "hp.03")

_FEWEST_STEPS = 30
_LIKE_A_GUESS = 0.9
_LIKE_THE_START = 0.95
_DEAD = 0.9
_FEWEST_UNITS = 4
_FLAT = 0.02
_MOSTLY = 0.9
_DEEP = 4
_VANISHED = 1e-3
_ALONG_DEPTH = -0.6
_FAR_ABOVE_A_GUESS = 10.0
_GROWN = 100.0
_GROWN_STATE = 1000.0
_JUMP = 100.0
_FEWEST_JUMPS = 3


def conclude(run: Run) -> Finding:
    curves = training_curves(run)
    if not curves:
        return ITEM.not_applicable("No gradients of a training were seen.")
    if alternate(curves):
        return ITEM.not_checked("several optimizers share the training: no single loss tells whether it learns.")
    return worst_of(Part(name_of_optimizer(run, curve.optimizer), _conclude_curve(run, curve)) for curve in curves)


def _conclude_curve(run: Run, curve: Curve) -> Finding:
    flow = Flow(run, curve)
    if not flow.layers and not flow.recurrent:
        return ITEM.not_applicable("The network has no linear, convolution or recurrent layers that are trained.")
    growing = _growing(flow)
    if growing is not None:
        return growing
    broken = curve.first_broken
    if broken is not None:
        return _infinite(flow, broken) or ITEM.not_checked(
            f"the loss or the gradients are no finite numbers from step {curve.steps[broken].id} on."
        )
    if len(curve.steps) < _FEWEST_STEPS:
        return ITEM.not_checked(f"{len(curve.steps)} steps are too few to say that the network does not learn ({_FEWEST_STEPS}).")
    if _learns(curve):
        return _flows(curve, flow)
    found = _jumping(flow) or _dead(run, flow) or _saturated(flow) or _vanishing(flow)
    return found or ITEM.no_problem(
        "The network hardly learns, but its gradients arrive in all layers.", limits=_limits(curve), confidence=0.6
    )


def _level(curve: Curve) -> tuple[float, str]:
    """The loss that the second half must stay below to count as learning, and what it is called."""
    if curve.guess is not None:
        return _LIKE_A_GUESS * curve.guess, f"a constant guess costs {curve.guess:.3g}"
    first = float(curve.losses[:5].mean())
    return _LIKE_THE_START * first, f"it started at {first:.3g}"


def _learns(curve: Curve) -> bool:
    level, _ = _level(curve)
    return level <= 0 or float(curve.late.mean()) < level


def _stands(curve: Curve) -> str:
    return f"the loss stays at {float(curve.late.mean()):.3g} ({_level(curve)[1]})"


def _limits(curve: Curve) -> str:
    return (
        f"Over {len(curve.steps)} steps: in a network that does not learn, {_DEAD:.0%} dead units of a layer, a mean derivative "
        f"below {_FLAT:.0%}, or a first layer's gradient below {_VANISHED:g} of the last one's would have been seen."
    )


def _flows(curve: Curve, flow: Flow) -> Finding:
    evidence = []
    if flow.layers and flow.late_steps:
        relative = flow.relative_gradients(flow.late_steps[-1])
        if np.isfinite(relative).any():
            evidence.append(
                Evidence(
                    f"Relative gradients of {len(flow.layers)} layers at step {flow.late_steps[-1]}: {np.nanmin(relative):.2g} "
                    f"to {np.nanmax(relative):.2g}.",
                    {"smallest": float(np.nanmin(relative)), "largest": float(np.nanmax(relative))},
                    flow.late_steps[-1],
                )
            )
    return ITEM.no_problem("The network learns: its gradients arrive.", limits=_limits(curve), confidence=0.8, evidence=evidence)


def _where(layer: Layer) -> Location | None:
    """The line that initialised the layer by hand, else the one that built it."""
    own = layer.weight.initialised
    location = own if own is not None and own != layer.module.built else layer.module.built
    return None if location is None else location.of_module(layer.module.name)


def _dead(run: Run, flow: Flow) -> Finding | None:
    last = flow.curve.steps[-1]
    silent: list[tuple[Layer, float]] = []
    for layer in flow.layers[:-1]:
        shares = flow.dead_shares(layer)
        if layer.weight.shape[0] >= _FEWEST_UNITS and len(shares) >= 2 and min(shares) >= _DEAD:
            silent.append((layer, min(shares)))
    if not silent or not last.grad_norm:
        return None
    # Behind a layer without signal all earlier ones are without gradient: the last of them is where it stops.
    layer, share = silent[-1]
    bias = _bias_line(run, layer)
    return ITEM.problem(
        f"{share:.0%} of the units of {layer.module.name} are dead: they get no gradient in any batch; {_stands(flow.curve)}.",
        confidence=0.85,
        evidence=[
            Evidence(
                f"{one.module.name} [{one.weight.shape[0]} units]: {part:.0%} without gradient at each of {len(flow.late_steps)} "
                "sampled steps of the second half.",
                {"dead": part, "units": one.weight.shape[0]},
                location=one.module.built,
            )
            for one, part in silent[:6]
        ],
        fix="Look for biases far below zero, a learning rate that is too high in the first steps, or inputs of one sign; leaky "
        f"activations ({words_of(run).leaky}) and the usual initialisation keep units alive.",
        location=bias or _where(layer),
        limits=_limits(flow.curve),
    )


def _bias_line(run: Run, layer: Layer) -> Location | None:
    """The line that set the layer's bias apart from its construction."""
    for parameter in run.parameters.values():
        own = parameter.initialised
        if (
            parameter.module == layer.module.id
            and parameter.path.endswith("bias")
            and own is not None
            and own != layer.module.built
        ):
            return own.of_module(layer.module.name)
    return None


def _saturated(flow: Flow) -> Finding | None:
    flat = []
    for one in flow.saturations():
        below = sum(share < _FLAT for share in one.shares)
        if len(one.shares) >= 3 and below >= _MOSTLY * len(one.shares):
            flat.append(one)
    if not flat:
        return None
    worst = flat[0]
    return ITEM.problem(
        f"{listed(one.name for one in flat)} work{'s' if len(flat) == 1 else ''} at the flat ends: the mean derivative is "
        f"{float(np.median(worst.shares)):.2%} of the steepest, and {_stands(flow.curve)}.",
        confidence=0.8,
        evidence=[
            Evidence(
                f"{one.name}: mean derivative between {min(one.shares):.2%} and {max(one.shares):.2%} of the steepest, at "
                f"{len(one.shares)} sampled steps.",
                {"smallest": min(one.shares), "largest": max(one.shares)},
                location=one.location,
            )
            for one in flat[:6]
        ],
        fix="Bring what goes into the activation to a size of about one: usual initial weights (xavier), normalised inputs, a "
        "normalisation layer before it.",
        location=None if worst.location is None else worst.location.of_module(worst.name),
        limits=_limits(flow.curve),
    )


def _vanishing(flow: Flow) -> Finding | None:
    if len(flow.layers) < _DEEP:
        return None
    rows = np.array([flow.relative_gradients(step) for step in flow.late_steps])
    if not len(rows) or np.isnan(rows).all(axis=0).any():
        return None
    typical = np.nanmedian(rows, axis=0)
    if not typical[-1] > 0 or typical[0] >= _VANISHED * typical[-1]:
        return None
    # Depth counts from the output: along it gradients have to fall.
    tau, _ = trend(np.log(np.maximum(typical[::-1], 1e-300)))
    if tau > _ALONG_DEPTH:
        return None
    first = flow.layers[0]
    steepest = int(np.argmax(np.diff(np.log(np.maximum(typical, 1e-300)))))
    named = flow.layers[max(1, steepest)] if steepest + 1 < len(flow.layers) - 1 else flow.layers[len(flow.layers) // 2]
    return ITEM.problem(
        f"The gradients vanish on their way back: that of {first.module.name} is {typical[0] / typical[-1]:.1g} of that of "
        f"{flow.layers[-1].module.name} (relative to the weights), and {_stands(flow.curve)}.",
        confidence=0.8,
        evidence=[
            Evidence(
                "Relative gradients from the first layer to the last: " + ", ".join(f"{value:.1g}" for value in typical) + ".",
                {"relative_gradients": [float(value) for value in typical]},
                flow.late_steps[-1],
            )
        ],
        fix=f"Use rectified activations ({words_of(flow.run).rectified}), normalisation layers or "
        "residual connections in deep networks, and weights of the usual size.",
        location=_where(named),
        limits=_limits(flow.curve),
    )


def _growing(flow: Flow) -> Finding | None:
    """A signal that grows from layer to layer before the first step, up to a loss far above that of a guess."""
    curve = flow.curve
    first = float(curve.losses[0])
    if curve.guess is None or not first >= _FAR_ABOVE_A_GUESS * curve.guess:
        return None
    if flow.recurrent:
        return _growing_over_time(flow, first)
    if len(flow.layers) < _DEEP:
        return None
    sizes = flow.signal_sizes(curve.steps[0].id)
    known = np.flatnonzero(np.isfinite(sizes) & (sizes > 0))
    if len(known) < _DEEP:
        return None
    tau, _ = trend(np.log(sizes[known]))
    grown = float(sizes[known].max() / sizes[known[0]])
    if grown < _GROWN or tau < -_ALONG_DEPTH:
        return None
    named = flow.layers[int(known[int(np.argmax(np.diff(np.log(sizes[known])))) + 1])]
    return ITEM.problem(
        f"The signal grows {grown:.2g}-fold through the layers, and gradients with it: the first loss is {first:.3g} where a "
        f"constant guess costs {curve.guess:.3g}.",
        confidence=0.8,
        evidence=[
            Evidence(
                "Size of the layers' outputs at the first step: " + ", ".join(f"{value:.2g}" for value in sizes[known]) + ".",
                {"sizes": [float(value) for value in sizes[known]], "first_loss": first, "guess": curve.guess},
                curve.steps[0].id,
            )
        ],
        fix="Initialise the layers so that signals keep their size "
        f"({either(flow.run, pytorch='nn.init.kaiming_normal_', mindspore='weight_init=HeNormal()')} for rectified units, or the "
        "framework's default), or put normalisation layers between them.",
        location=_where(named),
        limits=f"Seen: outputs that grow {_GROWN:g}-fold along at least {_DEEP} layers with a first loss {_FAR_ABOVE_A_GUESS:g} "
        "times a guess's.",
    )


def _growing_over_time(flow: Flow, first: float) -> Finding | None:
    """A recurrent layer whose states grow from one moment of the series to the next; bounded activations give at most one."""
    curve = flow.curve
    for layer in flow.recurrent:
        size = flow.size_of_output(layer, curve.steps[0].id)
        if not size >= _GROWN_STATE:
            continue
        return ITEM.problem(
            f"The states of {layer.module.name} grow to {size:.2g} along the series, and gradients with them: the first loss is "
            f"{first:.3g} where a constant guess costs {curve.guess:.3g}.",
            confidence=0.8,
            evidence=[
                Evidence(
                    f"Size of the outputs of {layer.module.name} at the first step: {size:.3g}.",
                    {"size": size, "first_loss": first, "guess": curve.guess},
                    curve.steps[0].id,
                )
            ],
            fix="Use gated cells (LSTM, GRU) or tanh, keep the recurrent weights' norm at one "
            f"({either(flow.run, pytorch='nn.init.orthogonal_', mindspore='initializer Orthogonal()')}), and clip the gradients.",
            location=_where(layer),
            limits=f"Seen: states above {_GROWN_STATE:g} with a first loss {_FAR_ABOVE_A_GUESS:g} times a guess's.",
        )
    return None


def _norms(curve: Curve) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.nan if step.grad_norm is None else step.grad_norm for step in curve.steps])


def _jumping(flow: Flow) -> Finding | None:
    norms = _norms(flow.curve)
    if np.isnan(norms).any() or not np.median(norms) > 0:
        return None
    usual = float(np.median(norms))
    jumps = np.flatnonzero(norms >= _JUMP * usual)
    if len(jumps) < _FEWEST_JUMPS:
        return None
    return _exploding(
        flow,
        f"jumps to {_JUMP:g} times its usual size at {len(jumps)} of {len(norms)} steps",
        usual,
        float(norms.max()),
        int(jumps[0]),
    )


def _infinite(flow: Flow, broken: int) -> Finding | None:
    """Gradients that grow to thousands of times their usual size before anything is infinite; a sudden end is mp.01's."""
    curve = flow.curve
    norms, losses = _norms(curve), curve.losses
    before = norms[:broken]
    usual = float(np.median(before)) if broken and np.isfinite(before).all() else math.nan
    steady = broken > 0 and bool((losses[:broken] <= _JUMP * max(float(losses[0]), curve.guess or 0.0)).all())
    peak = float(before[-3:].max()) if broken else math.nan
    if not steady or not peak >= _JUMP * usual:
        return None
    return _exploding(flow, f"is no finite number at step {curve.steps[broken].id}", usual, peak, broken)


def _exploding(flow: Flow, how: str, usual: float, peak: float, place: int) -> Finding:
    recurrent = flow.recurrent[0] if flow.recurrent else None
    layer = recurrent or flow.layers[0]
    step = flow.curve.steps[place].id
    location = layer.module.built
    return ITEM.problem(
        f"The gradients explode: their norm, usually {usual:.3g}, {how}.",
        confidence=0.8 if recurrent else 0.65,
        evidence=[
            Evidence(f"Gradient norm: median {usual:.4g}, largest {peak:.4g}.", {"median": usual, "largest": peak}, step),
            Evidence(f"Loss {flow.curve.losses[place]:.4g} at step {step}.", {"loss": float(flow.curve.losses[place])}, step),
        ],
        fix="Clip the gradients before the step, "
        + either(
            flow.run,
            pytorch="`torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`",
            mindspore="`gradients = ops.clip_by_global_norm(gradients, 1.0)`",
        )
        + "; in recurrent networks also use gated cells (LSTM, GRU), tanh, and recurrent weights of norm one.",
        location=None if location is None else location.of_module(layer.module.name),
        limits=f"Jumps to {_JUMP:g} times the median norm would have been seen.",
    )
