"""The names that frameworks and wrappers give to the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterable

# MindSpore's names of what normalisation and embedding layers hold, in PyTorch's words.
_SAME_THING = {
    "gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var",
    "embedding_table": "weight",
}  # fmt: skip
# Put in front by what wraps a model to train or compile it, never by the model's author.
_ALWAYS_WRAPPERS = frozenset({"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
# Put in front by cells that hold the model beside a loss or an optimizer; a model may use them itself, so they are left out
# only where all of a side's names share them.
_SHARED_WRAPPERS = frozenset({"model", "backbone", "_backbone", "network", "_network", "net", "_net"})
# Counters and states of optimizers, which no model of the other side has to have.
_NO_PARAMETER = re.compile(
    r"(^|\.)num_batches_tracked$"
    r"|^(moments?|moment[12v]|accum|stat|exp_avg|exp_avg_sq|momentum_buffer)\."
    r"|^(global_step|learning_rate|weight_decay|momentum|beta[12]_power|loss_scale|scale_sense|current_iterator_step"
    r"|last_overflow_iterator_step|epoch(_num)?|step(_num)?|cur_step|optimizer)$"
    r"|^(optimizer|optim|lr_scheduler|scheduler|scaler)\."
)
_WORDS = re.compile(r"[._/]+|(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])")


def is_no_parameter(name: str) -> bool:
    """Whether a name is that of a counter or of an optimizer's state, which is left out of a comparison of models."""
    return _NO_PARAMETER.search(name) is not None


def canonical_names(names: Iterable[str]) -> dict[str, str]:
    """Each name without wrappers and in PyTorch's words. What is called the same afterwards is most likely the same."""
    plain = {name: [part for part in name.split(".") if part not in _ALWAYS_WRAPPERS] or [name] for name in names}
    while len({parts[0] for parts in plain.values()}) == 1 and all(
        len(parts) > 1 and parts[0] in _SHARED_WRAPPERS for parts in plain.values()
    ):
        plain = {name: parts[1:] for name, parts in plain.items()}
    return {name: ".".join([*parts[:-1], _SAME_THING.get(parts[-1], parts[-1])]) for name, parts in plain.items()}


def role(name: str) -> str:
    """What a parameter is within its layer, in PyTorch's words: `weight`, `bias`, `running_mean`."""
    last = name.rpartition(".")[2]
    # The first layer of a recurrent module holds what a cell of its own does.
    return _SAME_THING.get(last, last.removesuffix("_l0").replace("_l0_", "_"))


def words_of(canonical: str) -> tuple[str, ...]:
    """The words of a name, whichever way they are joined: `layer1.0.conv2` and `layer_1_0.conv2` have the same."""
    return tuple(word for word in _WORDS.split(canonical.lower()) if word)
