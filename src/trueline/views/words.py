"""The words of the framework that a run was trained with: what a finding tells somebody to write must exist there.

Terms that several findings use are fields of `Words`. Where a whole sentence differs, `either` holds the two side by side.
Words of PyTorch's API stand nowhere else in what the checks say; tests/checks/test_words.py looks for them.
"""

from __future__ import annotations

import msgspec

from trueline.store import Run


class Words(msgspec.Struct, frozen=True):
    """What a framework calls the things that findings speak of, as a script writes them."""

    name: str
    library: str
    """The framework among the libraries whose seeds are recorded."""
    seed: str
    training_mode: str
    evaluation_mode: str
    forward: str
    step: str
    parameters: str
    axis: str
    random_weights: str
    rectified: str
    """Activations that pass the gradient of positive values on as it is."""
    leaky: str
    """Those that pass some of it on for every value."""


PYTORCH = Words(
    name="PyTorch",
    library="torch",
    seed="torch.manual_seed(seed)",
    training_mode="train()",
    evaluation_mode="eval()",
    forward="forward",
    step="optimizer.step()",
    parameters="model.parameters()",
    axis="dim",
    random_weights="nn.init.kaiming_uniform_ or xavier_uniform_",
    rectified="nn.ReLU, nn.GELU",
    leaky="nn.LeakyReLU, nn.GELU",
)
MINDSPORE = Words(
    name="MindSpore",
    library="mindspore",
    seed="mindspore.set_seed(seed)",
    training_mode="set_train(True)",
    evaluation_mode="set_train(False)",
    forward="construct",
    step="optimizer(gradients)",
    parameters="model.trainable_params()",
    axis="axis",
    random_weights="weight_init=HeUniform() or XavierUniform() (mindspore.common.initializer)",
    rectified="nn.ReLU, nn.GELU",
    leaky="nn.LeakyReLU, nn.GELU",
)


def words_of(run: Run) -> Words:
    return MINDSPORE if run.framework == "mindspore" else PYTORCH


def either(run: Run, *, pytorch: str, mindspore: str) -> str:
    """The one of two texts that is in the words of the run's framework."""
    return mindspore if run.framework == "mindspore" else pytorch
