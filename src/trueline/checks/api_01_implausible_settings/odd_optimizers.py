"""Settings of optimizers and losses that cannot be meant."""

from __future__ import annotations

from typing import Any

from trueline.checks.api_01_implausible_settings.odd_layers import Oddity
from trueline.model import Evidence, Location, Optimizer
from trueline.store import Run
from trueline.views.words import either

HALF = 0.5
LONG_MEMORY = 0.98
SHRINKS = 0.1
ADAMS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam", "AdamWeightDecay", "LazyAdam", "AdaMax"})
MOMENTUMS = frozenset({"SGD", "RMSprop", "Momentum", "RMSProp"})
# Their weight decay is added to the gradient, unless they are told to keep it apart.
COUPLED = frozenset("SGD Adam RMSprop Adagrad NAdam RAdam Adamax ASGD Adadelta Rprop Momentum RMSProp LazyAdam AdaMax".split())


def optimizer_settings(run: Run) -> list[Oddity]:
    groups: dict[tuple[int, int], dict[str, Any]] = {}
    for value in run.hyperparameters:
        # The first value counts: schedules may take what follows through unusual places.
        groups.setdefault((value.optimizer, value.group), {}).setdefault(value.name, value.value)
    found = []
    for (number, _), settings in groups.items():
        optimizer = run.optimizers.get(number)
        if optimizer is not None:
            found += _of_group(run, optimizer, settings)
    return found


def _number(settings: dict[str, Any], name: str) -> float:
    value = settings.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _of_group(run: Run, optimizer: Optimizer, settings: dict[str, Any]) -> list[Oddity]:
    found = []
    momentum, dampening = _number(settings, "momentum"), _number(settings, "dampening")
    if optimizer.type in MOMENTUMS and momentum >= 1:
        found.append(
            _oddity(
                optimizer, "momentum", momentum, 0.9,
                f"velocity = {momentum:g} · velocity + gradient never decays: steps grow without bound",
                "Use a momentum below 1 (0.9 is usual).",
            )
        )  # fmt: skip
    if optimizer.type == "SGD" and momentum > 0 and dampening >= 1:
        found.append(
            _oddity(
                optimizer, "dampening", dampening, 0.9,
                f"velocity = {momentum:g} · velocity + {1 - dampening:g} · gradient: after the first step no gradient counts",
                "Leave dampening at 0.",
            )
        )  # fmt: skip
    found += _betas(run, optimizer, settings.get("betas"))
    found += _decay(optimizer, settings)
    return found


def _betas(run: Run, optimizer: Optimizer, betas: Any) -> list[Oddity]:
    if optimizer.type not in ADAMS or not isinstance(betas, list | tuple) or len(betas) != 2:
        return []
    first, second = map(float, betas)
    if not (first > second and first >= LONG_MEMORY):
        return []
    return [
        _oddity(
            optimizer, "betas", (first, second), 0.9,
            f"the gradient is averaged over about {1 / (1 - first):.0f} steps and its square over {1 / (1 - second):.0f} "
            "only, while the method needs beta1 below sqrt(beta2): the two are swapped",
            f"Use {either(run, pytorch=f'betas=({second:g}, {first:g})', mindspore=f'beta1={second:g}, beta2={first:g}')}.",
        )
    ]  # fmt: skip


def _decay(optimizer: Optimizer, settings: dict[str, Any]) -> list[Oddity]:
    decay, rate = _number(settings, "weight_decay"), _number(settings, "lr")
    coupled = optimizer.type in COUPLED and not settings.get("decoupled_weight_decay")
    shrinks = rate * decay if optimizer.type in ("SGD", "Momentum", "AdamW") or not coupled else 0.0
    if not (coupled and decay >= HALF) and shrinks < SHRINKS:
        return []
    effect = (
        f"every step takes {rate * decay:.0%} off each weight"
        if shrinks >= SHRINKS
        else f"{decay:g} times the weight is added to its gradient, which outweighs what the loss says"
    )
    return [
        _oddity(
            optimizer, "weight_decay", decay, 0.8, effect,
            "Use a weight decay of 1e-5 to 1e-2 (up to 0.1 with AdamW); a decay of the learning rate needs a scheduler.",
        )
    ]  # fmt: skip


def _oddity(optimizer: Optimizer, name: str, value: Any, confidence: float, effect: str, fix: str) -> Oddity:
    shown = f"{value:g}" if isinstance(value, float) else f"({', '.join(f'{part:g}' for part in value)})"
    return Oddity(
        f"{optimizer.type} with {name} = {shown}: {effect}.",
        confidence,
        [Evidence(f"{optimizer.type}: {name} = {shown}; {effect}.", {name: value}, 0, optimizer.built)],
        optimizer.built,
        fix,
    )


def label_smoothing(run: Run) -> list[Oddity]:
    for loss in run.loss_calls:
        value = _number(loss.settings, "label_smoothing")
        if value < HALF or not loss.grad:
            continue
        where = _where_built(run, value) or loss.location
        shape = list(loss.input.get("shape") or [])
        classes = shape[1] if len(shape) > 1 else 0
        share = 1 - value + value / classes if classes else 1 - value
        return [
            Oddity(
                f"Label smoothing of {value:g} leaves the label a weight of {share:.2f}: what is smoothed away outweighs it.",
                0.85,
                [
                    Evidence(
                        f"target = {1 - value:.2g} · label + {value:g} / {classes} for each of {classes} classes.",
                        {"label_smoothing": value, "weight_of_label": share},
                        loss.step,
                        loss.location,
                    )
                ],
                where,
                f"Give the share that is taken from the label: {1 - value:.2g} when {value:g} was meant as its confidence.",
            )
        ]
    return []


def _where_built(run: Run, value: float) -> Location | None:
    """The line that builds the loss module with this setting."""
    for module in run.modules.values():
        if module.kind == "loss" and module.settings.get("label_smoothing") == value:
            return module.built
    return None
