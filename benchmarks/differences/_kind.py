"""The kinds of difference that are planted: what is expected of the comparison, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass

FIRST = "first loss"
SECOND = "second loss"
LATER = "later loss"
NEVER = "no loss"


@dataclass(frozen=True)
class Kind:
    """One kind of difference. `words`: one of them must be said, at the beginning of a word, whatever its case."""

    name: str
    title: str
    phases: frozenset[str]
    """The phases that are right, mostly one."""
    words: tuple[str, ...]
    shows: str
    """Which loss of a run with the same weights and batches and without dropout is the first to differ."""
    step: int | None = None
    """The step at which it begins, where that is not the first; one step aside is right too."""


def _kind(name: str, title: str, phases: str, words: str, shows: str, step: int | None = None) -> Kind:
    return Kind(name, title, frozenset(phases.split()), tuple(words.split(", ")), shows, step)


_ALL = (
    # Running statistics are kept in the forward pass, and read in evaluation only.
    _kind("batch_norm_momentum", "momentum of BatchNorm", "forward update", "momentum, running", NEVER),
    _kind("batch_norm_eps", "eps of BatchNorm", "forward", "eps", FIRST),
    _kind("layer_norm_eps", "eps of LayerNorm", "forward", "eps", FIRST),
    _kind("gelu_form", "GELU by tanh instead of erf", "forward", "gelu, approximat, tanh", FIRST),
    _kind("missing_bias", "a layer without its bias", "forward", "bias", FIRST),
    _kind("padding_offset", "padding on one side instead of both", "forward", "pad", FIRST),
    _kind("other_activation", "another activation", "forward", "activation, relu, silu, tanh, gelu", FIRST),
    _kind("missing_attention_scale", "attention without its scale", "forward", "scale, scaling, factor, sqrt", FIRST),
    _kind(
        "dropped_residual",
        "a branch that is not added to its input",
        "forward",
        "residual, skip, shortcut, identity, add, sum",
        FIRST,
    ),
    # Dropout is off in the comparison: only the setting tells.
    _kind("dropout_rate", "another rate of dropout", "forward", "dropout", NEVER),
    _kind("loss_sum", "sum over the batch instead of the mean", "loss", "reduction, sum", FIRST),
    _kind("loss_sum_compensated", "sum over the batch, the rate divided by its size", "loss", "reduction, sum", FIRST),
    _kind("label_smoothing", "another label smoothing", "loss", "label_smoothing, smooth", FIRST),
    # Clipping lies between backward and the update, and belongs to either.
    _kind("clip_value", "another limit of the gradient norm", "backward update", "clip", SECOND),
    _kind("clip_missing", "gradients not clipped", "backward update", "clip", SECOND),
    _kind("nesterov", "Nesterov's momentum or plain", "update", "nesterov", SECOND),
    _kind("optimizer_eps", "eps of the optimizer", "update", "eps", SECOND),
    _kind(
        "weight_decay_form",
        "weight decay in the gradient instead of decoupled",
        "update",
        "decay, weight_decay, adamw, decoupled, l2",
        SECOND,
    ),
    # The norms' scales begin at one, so the first update tells; the losses follow slowly.
    _kind("decay_of_norms", "norms left out of the weight decay", "update", "decay, weight_decay", LATER),
    _kind(
        "schedule",
        "learning rate lowered at step 40 instead of 30",
        "update",
        "lr, learning, rate, schedul, milestone, step_size",
        LATER,
        30,
    ),
    _kind("initial_weights", "initial weights of another distribution", "init", "init, distribution, std, spread", NEVER),
    _kind(
        "normalisation",
        "other constants of the normalisation",
        "data",
        "normal, standard, scale, mean, std, range, offset",
        NEVER,
    ),
    _kind("data_order", "another order of the samples", "data", "order, shuffl, permut", NEVER),
    _kind("not_shuffled", "samples not shuffled", "data", "order, shuffl, permut", NEVER),
)
KINDS = {kind.name: kind for kind in _ALL}
