"""Settings of layers that mean something else in this framework than where they are usual."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trueline.model import Evidence, Location, Module, Op
from trueline.store import Run
from trueline.views.dataflow import Trace, line_of, needs_gradient, plain, shape_of
from trueline.views.parameters import listed
from trueline.views.sample_axis import sample_counts
from trueline.views.words import either, words_of

KEEPS_LITTLE = 0.9
DROPS_MOST = 0.8
DROPS_HALF = 0.5
LARGE_EPS = 0.1
SUSPICIOUS_EPS = 0.01
NORMALISED = 0.5
IDENTITY_SLOPE = 1.0
NORMS = frozenset({"batch_norm", "layer_norm", "norm"})
SMALLEST_BATCH = 2


class Oddity(msgspec.Struct, frozen=True):
    """A setting that cannot be meant, with what it does."""

    summary: str
    confidence: float
    evidence: list[Evidence]
    location: Location | None
    fix: str


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _with_setting(run: Run, name: str, least: float, kinds: Iterable[str]) -> list[tuple[Module, float]]:
    wanted = frozenset(kinds)
    found = []
    for module in run.modules.values():
        value = _number(module.settings.get(name)) if module.kind in wanted and module.same_as is None else None
        if value is not None and value >= least:
            found.append((module, value))
    return found


def _built(module: Module) -> Location | None:
    where = module.built or module.called
    return None if where is None else where.of_module(module.name)


def _names(found: list[tuple[Module, float]]) -> str:
    return listed(module.name for module, _ in found)


def batch_norm_momentum(run: Run) -> list[Oddity]:
    found = [(module, value) for module, value in _with_setting(run, "momentum", KEEPS_LITTLE, ["batch_norm"]) if value < 1]
    found = [(module, value) for module, value in found if module.settings.get("track_running_stats", True)]
    if not found:
        return []
    module, value = found[0]
    if "given_momentum" in module.settings:
        return [_old_statistics_momentum(found)]
    evaluations = sum(call.batch_norm > 0 and call.batch_norm_batch == 0 for call in run.root_calls)
    return [
        Oddity(
            f"{_names(found)}: BatchNorm momentum {value:g} makes the last batch {value:.1%} of the running statistics that "
            f"evaluation uses; here momentum is the weight of the new batch ({1 - value:.3g} is meant by {value:g} elsewhere).",
            0.9,
            [
                Evidence(
                    f"{module.name} ({module.type}): running = {1 - value:.3g} · running + {value:g} · batch; the batch "
                    f"before the last counts {value * (1 - value):.2g}. {evaluations} calls used the running statistics.",
                    {"momentum": value, "modules": [one.name for one, _ in found[:20]], "calls_in_eval_mode": evaluations},
                    location=_built(module),
                )
            ],
            _built(module),
            f"Give {1 - value:.3g} instead of {value:g} (or leave out the argument: the default is 0.1).",
        )
    ]


def _old_statistics_momentum(found: list[tuple[Module, float]]) -> Oddity:
    """The other convention: a momentum that is the weight of the old statistics."""
    module, value = found[0]
    given = module.settings["given_momentum"]
    return Oddity(
        f"{_names(found)}: BatchNorm momentum {given:g} makes the last batch {value:.1%} of the running statistics that "
        f"evaluation uses; in MindSpore momentum is the weight of the old statistics ({given:g} in PyTorch's convention is "
        f"{value:g} here).",
        0.9,
        [
            Evidence(
                f"{module.name} ({module.type}): running = {given:g} · running + {value:g} · batch; the batch before the last "
                f"counts {value * given:.2g}.",
                {"momentum": given, "modules": [one.name for one, _ in found[:20]]},
                location=_built(module),
            )
        ],
        _built(module),
        f"Give {value:g} instead of {given:g} (or leave out the argument: the default is 0.9).",
    )


def dropped_shares(run: Run) -> list[Oddity]:
    trace = Trace(run)
    layers = _with_setting(run, "p", DROPS_MOST, ["dropout"])
    layers += _with_setting(run, "dropout", DROPS_MOST, ["recurrent", "attention"])
    layers = [(module, value) for module, value in layers if not _takes_the_input(trace, module.id)]
    kept = [(module, value) for module, value in _with_setting(run, "p", DROPS_HALF, ["dropout"]) if _is_keep_prob(module, value)]
    found = []
    if kept:
        found.append(_keep_prob_oddity(kept))
    elif layers:
        module, value = layers[0]
        found.append(_dropout_oddity(_names(layers), value, _built(module), [one.name for one, _ in layers[:20]]))
    for op in trace.ops.values():
        value = _number(op.settings.get("p")) or 0.0
        owner = run.modules.get(op.module) if op.module is not None else None
        by_layer = owner is not None and owner.kind in ("dropout", "recurrent", "attention")
        if "dropout" not in plain(op.name) or value < DROPS_MOST or by_layer or not op.settings.get("training", True):
            continue
        if needs_gradient(op):
            found.append(_dropout_oddity("dropout", value, line_of(run, op), [owner.name if owner is not None else "script"]))
            break
    return found


def _is_keep_prob(module: Module, value: float) -> bool:
    """Whether a dropout layer was given a small share to keep, as its first argument and without a name: the share to drop where
    the script comes from."""
    written = (module.built.source or "") if module.built is not None else ""
    return module.settings.get("given") == "keep_prob" and value > DROPS_HALF and "keep_prob" not in written


def _keep_prob_oddity(kept: list[tuple[Module, float]]) -> Oddity:
    module, value = kept[0]
    given = 1 - value
    return Oddity(
        f"{_names(kept)}: the first argument of MindSpore's Dropout is keep_prob, the share of units that is kept: "
        f"Dropout({given:g}) drops {value:.0%} of them in training.",
        0.9 if value >= DROPS_MOST else 0.8,
        [
            Evidence(
                f"With keep_prob = {given:g} each unit is zero in {value:.0%} of the training passes and {1 / given:.3g} times "
                "as large in the others."
                if given > 0
                else "With keep_prob = 0 every unit is zero in training.",
                {"keep_prob": given, "p": value, "modules": [one.name for one, _ in kept[:20]]},
                location=_built(module),
            )
        ],
        _built(module),
        f"Give the share to drop by name: Dropout(p={given:g}).",
    )


def _takes_the_input(trace: Trace, module: int) -> bool:
    """Whether a dropout layer works on what the model is fed, before anything trainable."""
    ops = [op for op in trace.ops.values() if op.module == module]
    return bool(ops) and not any(needs_gradient(op) for op in ops)


def _dropout_oddity(names: str, value: float, where: Location | None, modules: list[str]) -> Oddity:
    return Oddity(
        f"{names}: {value:g} is the share of units that is dropped, not the share that is kept: only {1 - value:.0%} of them get "
        "through in training.",
        0.85 if value > DROPS_MOST else 0.75,
        [
            Evidence(
                f"With p = {value:g} each unit is zero in {value:.0%} of the training passes"
                + (f" and {1 / (1 - value):.3g} times as large in the others." if value < 1 else "."),
                {"p": value, "modules": modules},
                location=where,
            )
        ],
        where,
        f"Give the probability of dropping: {1 - value:.2g} when {value:g} was meant as keep_prob.",
    )


def norm_eps(run: Run) -> list[Oddity]:
    suspicious = _with_setting(run, "eps", SUSPICIOUS_EPS, NORMS)
    if not suspicious or _models_compete(run):
        return []
    spread = {stat.subject: stat.std for stat in reversed(run.stats("output")) if stat.step == 0}
    found = [
        (module, value)
        for module, value in suspicious
        if value >= LARGE_EPS or ((spread.get(module.id) or 1.0) < NORMALISED and _starts_neutral(run, module))
    ]
    if not found:
        return []
    module, value = found[0]
    std = spread.get(module.id)
    return [
        Oddity(
            f"{_names(found)}: eps {value:g} is added to the variance before dividing; it is there to avoid a division by zero, "
            "and of this size it undoes the normalisation.",
            0.85,
            [
                Evidence(
                    f"{module.name} ({module.type}) divides by sqrt(variance + {value:g})"
                    + (f"; the standard deviation of its first output is {std:.3g}." if std is not None else "."),
                    {"eps": value, "first_output_std": std, "modules": [one.name for one, _ in found[:20]]},
                    0,
                    _built(module),
                )
            ],
            _built(module),
            f"Leave eps at its default{either(run, pytorch=' (1e-5)', mindspore='')}; if the number was meant as momentum, pass "
            "it by name and in this framework's convention.",
        )
    ]


def _starts_neutral(run: Run, module: Module) -> bool:
    """Whether the scale that a norm multiplies with starts at one, so that its output must have a deviation of about one."""
    scales = [p.id for p in run.parameters.values() if p.module == module.id and p.path.endswith("weight")]
    starts = [stat for number in scales for stat in run.stats("parameter", number) if stat.step == -1]
    return all(stat.min == stat.max == 1.0 for stat in starts)


def _models_compete(run: Run) -> bool:
    """Whether several optimizers train models of their own."""
    return len({step.optimizer for step in run.steps if step.optimizer is not None}) > 1


def leaky_slopes(run: Run) -> list[Oddity]:
    places = [
        (module.name, value, _built(module))
        for module, value in _with_setting(run, "negative_slope", IDENTITY_SLOPE, ["activation"])
    ]
    for op in run.ops:
        value = _number(op.settings.get("negative_slope"))
        owner = run.modules.get(op.module) if op.module is not None else None
        if value is not None and value >= IDENTITY_SLOPE and (owner is None or owner.kind != "activation"):
            places.append(("leaky_relu", value, line_of(run, op)))
            break
    if not places:
        return []
    name, value, where = places[0]
    effect = "is the identity" if value == 1 else "amplifies negative values and has its bend upside down"
    return [
        Oddity(
            f"{name}: with a negative slope of {value:g} LeakyReLU {effect}.",
            0.85,
            [Evidence(f"leaky_relu(x) = x for x > 0 and {value:g} · x for x < 0.", {"negative_slope": value}, location=where)],
            where,
            either(
                run,
                pytorch="Use a slope well below 1 (0.01 is the default, 0.2 is usual in GANs).",
                mindspore="Use a slope well below 1 (0.2 is the default of nn.LeakyReLU, 0.01 is usual elsewhere).",
            ),
        )
    ]


def softmax_over_samples(run: Run) -> list[Oddity]:
    """A softmax inside of a model that shares its weight among the samples of the batch."""
    trace, counts = Trace(run), sample_counts(run)
    for op in trace.ops.values():
        if plain(op.name) not in ("softmax", "log_softmax") or not _is_over_samples(op, counts) or not _is_inside(trace, op):
            continue
        where, axis = line_of(run, op), words_of(run).axis
        shape = list(shape_of(op))
        return [
            Oddity(
                f"Softmax over the first axis of {shape}: the {shape[0]} samples of a batch compete with each other, and a "
                "sample's result depends on its neighbours.",
                0.85,
                [
                    Evidence(
                        f"`{plain(op.name)}` with {axis}={op.settings.get('dim')} on {shape}; a batch has {shape[0]} samples.",
                        {"shape": shape, "dim": op.settings.get("dim"), "samples": counts[op.step]},
                        op.step,
                        where,
                    )
                ],
                where,
                f"Give the axis that is meant: {axis}=-1 for features, {axis}=1 for the positions of a sequence.",
            )
        ]
    return []


def _is_over_samples(op: Op, counts: dict[int, int]) -> bool:
    shape = shape_of(op)
    if len(shape) < SMALLEST_BATCH or shape[0] != counts.get(op.step) or not needs_gradient(op):
        return False
    # A square matrix may compare the samples with each other on purpose.
    if shape[0] == shape[1]:
        return False
    dim = op.settings.get("dim")
    if dim is None:
        # Without an axis torch takes the first one of three-dimensional tensors.
        return len(shape) == 3
    return dim in (0, -len(shape))


def _is_inside(trace: Trace, op: Op) -> bool:
    """Whether weights of the model are applied to the result before the loss: what goes into the loss itself is cg.04's."""
    owner = trace.run.modules.get(op.module) if op.module is not None else None
    if owner is None or owner.kind == "loss":
        return False
    later = (trace.descendants([op]) & trace.loss_ancestors) - {op.seq}
    return any(reference.startswith("p") for seq in later for reference in trace.ops[seq].inputs)
