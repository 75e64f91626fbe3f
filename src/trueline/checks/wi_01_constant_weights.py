"""All-zero or constant initial weights

## What it checks
Whether weight matrices start at zero, at one constant, or with all rows equal, and stay so: units that compute the same
thing and get the same gradient can never become different. Also whether initial weights have a scale far off the fan-in rule
while the first loss shows it.

## Why it hurts accuracy
A layer of n equal units has the capacity of one. With zeros in consecutive layers no gradient arrives at all and only the
last bias learns. Weights that are far too large saturate the units and give a first loss far above that of a guess.

## Method
For every trainable weight with two or more axes (not biases, norm scales or embeddings) the recorder notes its range and the
spread between its rows (units) before the first step, and at sampled steps whether it had a gradient. Starting values are
suspicious when smallest and largest are equal, or when the spread between rows is 0. The fault is symmetry that training
does *not* break: after three or more optimizer steps the rows still differ by less than 1e-5 of the weights' size, or every
sampled gradient was exactly zero. Three steps, because a zero layer behind another zero layer on purpose (zero-initialised
residual branch and head) moves at the second or third. In shorter runs only two or more all-zero layers are reported, in a
network none of whose weights gets a gradient other than zero, which proves that they cannot move.

A network with hidden layers all of whose weight matrices start constant is reported even when dropout or rounding has told its
units apart: constants on purpose stand beside random matrices.

A recurrent layer's rows are of several gates, which differ from each other. Its units are stuck when all its weights and
biases start constant, every matrix of its model does so too, and nothing is dropped at random: then no unit of it ever
gets another gradient than the next.

The scale rule: std · sqrt(fan-in) above 10 in a linear or convolution layer that no normalisation follows, and a first
cross-entropy more than 10 above ln(classes), what a guess costs; or above 4 in most linear and convolution layers (three or
more) and a first cross-entropy more than 3 above it. All usual initialisations give 0.5 to 1.5.

## Evidence
The layers, their values before the first step, the spread between their rows at the end, their gradients.

## Limits
A constant recurrent layer beside matrices that are random is not reported, as those make its units different. Dropout breaks
symmetry: a single constant layer that dropout breaks up is not reported. Small scales are not judged.

## What to do
Leave the framework's default initialisation in place, or use a random one (nn.init.kaiming_uniform_, xavier_uniform_; MindSpore's
initializers HeUniform, XavierUniform); initialise only biases, norm scales and the last layer of a residual branch with
constants.
"""

from __future__ import annotations

import math
from itertools import pairwise

from trueline.checks.base import Item
from trueline.model import Evidence, Finding, Location, Module, Parameter, TensorStat
from trueline.store import Run
from trueline.views.parameters import ParameterHistory, listed
from trueline.views.source import line_of_parameter
from trueline.views.words import words_of

ITEM = Item(__name__, __doc__)
RANK = 10
CONSEQUENCES = ("cg.02", "tr.05", "hp.01", "hp.02", "hp.03")
NOT_WEIGHTS = frozenset({"embedding", "norm", "batch_norm", "layer_norm"})
ENOUGH_STEPS = 3
EQUAL_ROWS = 1e-5
LARGE_GAIN = 10.0
LOSS_ABOVE_GUESS = 10.0
LARGE_GAIN_EVERYWHERE = 4.0
LOSS_ABOVE_GUESS_EVERYWHERE = 3.0
FEWEST_LAYERS = 3
_GATES = {"LSTM": "ifgo", "LSTMCell": "ifgo", "GRU": "rzn", "GRUCell": "rzn"}


def conclude(run: Run) -> Finding:
    history = ParameterHistory(run)
    weights = [parameter for parameter in history.weights if _is_weight(run, history, parameter)]
    if not weights:
        return ITEM.not_applicable("The run has no trainable weight matrices that an optimizer steps.")
    if not history.optimizer_steps:
        return ITEM.not_checked("no optimizer step was recorded.")
    initial = {stat.subject: stat for stat in run.stats("parameter") if stat.step == -1}
    alike = {parameter.id: how for parameter in weights if (how := _start(history, parameter, initial.get(parameter.id)))}
    suspects = [parameter for parameter in weights if parameter.id in alike]
    gated = _stuck_recurrent(run, history, weights, alike, initial)
    stuck = [parameter for parameter in suspects if parameter.id in gated or _is_stuck(run, history, parameter)]
    told = [parameter for parameter in stuck if _steps(history, parameter) >= ENOUGH_STEPS]
    if not told:
        told = _provably_dead(history, weights, [parameter for parameter in suspects if alike[parameter.id] == "all zero"])
    if told:
        return _symmetry_finding(run, history, told, alike, initial)
    if everywhere := _constant_throughout(run, weights, suspects):
        return _throughout_finding(run, history, everywhere, alike, initial)
    too_large = _too_large(run, weights, initial)
    if too_large is not None:
        return too_large
    if stuck:
        return ITEM.not_checked(
            f"{listed(p.name for p in suspects)} start constant, and {history.optimizer_steps} optimizer steps are too "
            "few to tell whether "
            f"training breaks the symmetry ({ENOUGH_STEPS} are needed)."
        )
    summary = f"All {len(weights)} weight matrices start with different values in their units."
    if suspects:
        summary = (
            f"{len(suspects)} of {len(weights)} weight matrices start constant ({listed(p.name for p in suspects)}), and "
            "training made their "
            "units different, as it does with zero-initialised heads, residual branches and adapters."
        )
    return ITEM.no_problem(summary, limits=_limits(history, weights), confidence=0.95)


def _is_weight(run: Run, history: ParameterHistory, parameter: Parameter) -> bool:
    return (
        len(parameter.shape) > 1
        and max(parameter.shape) > 1
        and run.modules[parameter.module].kind not in NOT_WEIGHTS
        and history.always_trainable(parameter)
        and history.is_held(parameter)
    )


def _start(history: ParameterHistory, parameter: Parameter, stat: TensorStat | None) -> str | None:
    """How a parameter started, when its units started alike."""
    first = history.snapshots(parameter)[0]
    if stat is not None and stat.min is not None and stat.min == stat.max:
        return "all zero" if stat.min == 0 else f"all {stat.min:.4g}"
    return "all rows equal" if first.row_spread == 0 else None


def _is_stuck(run: Run, history: ParameterHistory, parameter: Parameter) -> bool:
    """Whether training reached the parameter and did not make its units different."""
    gradients = history.gradients(parameter)
    if not gradients or set(gradients) == {"none"}:
        return False
    if set(gradients) == {"zero"}:
        sampled = [snapshot.step for snapshot in history.snapshots(parameter) if snapshot.gradient is not None]
        return sampled[-1] - sampled[0] + 1 >= ENOUGH_STEPS or history.optimizer_steps < ENOUGH_STEPS
    last = history.snapshots(parameter)[-1]
    if last.row_spread is None or last.step < 0:
        return False
    return last.row_spread <= EQUAL_ROWS * _size(run, parameter)


def _stuck_recurrent(
    run: Run, history: ParameterHistory, weights: list[Parameter], alike: dict[int, str], initial: dict[int, TensorStat]
) -> set[int]:
    """Weights of recurrent layers in models where everything starts constant and nothing breaks the symmetry of the units."""
    found: set[int] = set()
    for parameter in weights:
        if run.modules[parameter.module].kind != "recurrent" or "value" not in history.gradients(parameter):
            continue
        beside = [other for other in history.weights if other.module == parameter.module]
        constant = all(other.id in initial and initial[other.id].min == initial[other.id].max for other in beside)
        around = all(other.id in alike for other in weights if other.root == parameter.root)
        dropped = any(call.dropout_active for call in run.root_calls if run.modules[call.module].root == parameter.root)
        units = parameter.shape[0] // len(_GATES.get(run.modules[parameter.module].type, "h"))
        if constant and around and not dropped and units > 1:
            found.add(parameter.id)
    return found


def _steps(history: ParameterHistory, parameter: Parameter) -> int:
    """How often an optimizer stepped it."""
    return max((place.steps for place in history.held.get(parameter.id, [])), default=0)


def _provably_dead(history: ParameterHistory, weights: list[Parameter], zero: list[Parameter]) -> list[Parameter]:
    """All-zero layers of a root none of whose weights gets a gradient: two or more of them can never move."""
    alive = {parameter.root for parameter in weights if set(history.gradients(parameter)) != {"zero"}}
    dead = [parameter for parameter in zero if parameter.root not in alive]
    return dead if len(dead) > 1 else []


def _constant_throughout(run: Run, weights: list[Parameter], suspects: list[Parameter]) -> list[Parameter]:
    """All weight matrices of a network with hidden layers: zeros by design are in a head or a branch, beside random ones."""
    for root in {parameter.root for parameter in suspects}:
        matrices = [parameter for parameter in weights if parameter.root == root]
        constant = [parameter for parameter in suspects if parameter.root == root]
        others = [p for p in run.parameters.values() if p.root == root and not p.buffer and len(p.shape) > 1]
        hidden = any(one.shape[0] == other.shape[1] and one.shape[0] > 1 for one, other in pairwise(matrices))
        if hidden and len(constant) == len(matrices) == len(others):
            return constant
    return []


def _fix(run: Run) -> str:
    return (
        "Initialise the weights at random: remove the constant initialisation (the framework's default is random), or use "
        f"{words_of(run).random_weights}. Constants are for biases and norm scales."
    )


def _throughout_finding(
    run: Run, history: ParameterHistory, constant: list[Parameter], alike: dict[int, str], initial: dict[int, TensorStat]
) -> Finding:
    how = sorted({alike[parameter.id] for parameter in constant})
    return ITEM.problem(
        f"All {len(constant)} weight matrices of the network start {' / '.join(how)} ({listed(p.name for p in constant)}): the "
        "units of a layer start as copies of each other, and only chance (dropout, rounding) tells them apart.",
        confidence=0.93,
        evidence=[
            Evidence(
                f"{parameter.name} {list(parameter.shape)} starts {alike[parameter.id]}.",
                {"initial_min": initial[parameter.id].min, "initial_max": initial[parameter.id].max}
                if parameter.id in initial
                else {},
                -1,
                _where(run, parameter),
            )
            for parameter in constant[:8]
        ],
        fix=_fix(run),
        location=_where(run, constant[0]),
        limits=_limits(history, constant),
    )


def _size(run: Run, parameter: Parameter) -> float:
    """The root mean square of the parameter's values, when last measured after the first step."""
    sizes = [stat.l2 / math.sqrt(math.prod(stat.shape)) for stat in run.stats("parameter", parameter.id) if stat.l2 is not None]
    return max(sizes[-1], sizes[0]) if sizes else 0.0


def _symmetry_finding(
    run: Run, history: ParameterHistory, stuck: list[Parameter], alike: dict[int, str], initial: dict[int, TensorStat]
) -> Finding:
    without_signal = [parameter for parameter in stuck if set(history.gradients(parameter)) == {"zero"}]
    how = sorted({alike[parameter.id] for parameter in stuck})
    many = len(stuck) > 1
    dead = len(without_signal) == len(stuck)
    effect = "their gradients are exactly zero" if dead else "all units of a layer get the same gradient and stay equal"
    evidence = []
    for parameter in stuck[:8]:
        last = history.snapshots(parameter)[-1]
        stat = initial.get(parameter.id)
        gated = run.modules[parameter.module].kind == "recurrent"
        spread = (
            "" if last.row_spread is None else f"; after {history.optimizer_steps} steps its rows differ by {last.row_spread:.3g}"
        )
        if gated and last.row_spread:
            spread += ", from gate to gate (units of one gate get equal gradients)"
        gradients = ", ".join(sorted(set(history.gradients(parameter))))
        evidence.append(
            Evidence(
                f"{parameter.name} {list(parameter.shape)} starts {alike[parameter.id]}{spread}; gradients: {gradients}.",
                {
                    "initial_min": None if stat is None else stat.min,
                    "initial_max": None if stat is None else stat.max,
                    "row_spread_at_end": last.row_spread,
                    "optimizer_steps": history.optimizer_steps,
                },
                location=_where(run, parameter),
            )
        )
    return ITEM.problem(
        f"{'The weights' if many else 'The weight'} {listed(p.name for p in stuck)} start{'' if many else 's'} "
        f"{' / '.join(how)}, and training "
        f"cannot make {'their' if many else 'its'} units different: {effect}.",
        confidence=0.97,
        evidence=evidence,
        fix=_fix(run),
        location=_where(run, stuck[0]),
        limits=_limits(history, stuck),
    )


def _where(run: Run, parameter: Parameter) -> Location | None:
    module = run.modules[parameter.module]
    location = parameter.initialised
    if location is None and module.built is not None:
        # A parameter of the script's own class is made where that is written, not where the class is used.
        location = line_of_parameter(run, module.built, module.type, parameter.path.rpartition(".")[2]) or module.built
    return None if location is None else location.of_module(module.name)


def _too_large(run: Run, weights: list[Parameter], initial: dict[int, TensorStat]) -> Finding | None:
    """Weights far above the fan-in rule, with a first loss that shows it."""
    trained = [loss for loss in run.loss_calls if loss.grad and loss.kind == "cross_entropy" and loss.input.get("requires_grad")]
    first = trained[0] if trained else None
    if first is None or first.value is None or first.settings.get("reduction", "mean") != "mean":
        return None
    shape = first.input.get("shape") or []
    if len(shape) < 2:
        return None
    guess = math.log(shape[1])
    gains = {}
    for parameter in weights:
        stat = initial.get(parameter.id)
        if (
            run.modules[parameter.module].kind in ("linear", "conv")
            and parameter.loaded is None
            and stat is not None
            and stat.std
        ):
            gains[parameter.id] = stat.std * math.sqrt(math.prod(parameter.shape[1:]))
    large = _far_too_large(run, weights, gains, above_guess=first.value - guess)
    if not large:
        return None
    worst = max(large, key=lambda parameter: gains[parameter.id])
    return ITEM.problem(
        f"The initial weights of {listed(p.name for p in large)} are {gains[worst.id]:.3g} times the size that keeps "
        "signals at their scale, and "
        f"the first loss is {first.value:.4g} where a guess costs {guess:.3g}.",
        confidence=0.65,
        evidence=[
            Evidence(
                f"{p.name}: std · sqrt(fan-in) = {gains[p.id]:.3g}; usual initialisations give 0.5 to 1.5.",
                {"gain": gains[p.id]},
                -1,
                _where(run, p),
            )
            for p in large[:8]
        ]
        + [
            Evidence(
                f"First loss {first.value:.4g}, ln({shape[1]}) = {guess:.3g}.", {"loss": first.value, "guess": guess}, first.step
            )
        ],
        fix=f"Scale the weights with their fan-in: {words_of(run).random_weights}, or the framework's default.",
        location=_where(run, worst),
        limits=f"Seen only above {LARGE_GAIN:g} times the fan-in rule and with a first loss {LOSS_ABOVE_GUESS:g} above a guess, "
        f"or above {LARGE_GAIN_EVERYWHERE:g} times in most layers and {LOSS_ABOVE_GUESS_EVERYWHERE:g} above a guess.",
    )


def _far_too_large(run: Run, weights: list[Parameter], gains: dict[int, float], *, above_guess: float) -> list[Parameter]:
    """Single layers that nothing normalises, or most layers of a network, as the first loss shows them."""
    if above_guess > LOSS_ABOVE_GUESS:
        single = [p for p in weights if gains.get(p.id, 0.0) > LARGE_GAIN and not _is_normalised(run, run.modules[p.module])]
        if single:
            return single
    large = [p for p in weights if gains.get(p.id, 0.0) > LARGE_GAIN_EVERYWHERE]
    everywhere = len(large) >= FEWEST_LAYERS and len(large) > len(gains) / 2
    return large if everywhere and above_guess > LOSS_ABOVE_GUESS_EVERYWHERE else []


def _is_normalised(run: Run, module: Module) -> bool:
    """Whether the module that comes next in its tree is a normalisation."""
    after = [other for other in run.modules.values() if other.root == module.root and other.id > module.id]
    return bool(after) and after[0].kind in NOT_WEIGHTS - {"embedding"}


def _limits(history: ParameterHistory, weights: list[Parameter]) -> str:
    return (
        f"Looked at {len(weights)} weight matrices over {history.optimizer_steps} optimizer steps. Would have seen zero, "
        "constant or equal rows "
        "that stay so; a constant recurrent layer beside random matrices, and constants that dropout breaks up, are not seen."
    )
