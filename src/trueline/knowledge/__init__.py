"""What the settings of layers, losses and optimizers mean, in words that hold for both frameworks."""

from trueline.knowledge.changes import change_of
from trueline.knowledge.defaults import default_settings
from trueline.knowledge.layers import layer_settings, same_layer
from trueline.knowledge.losses import loss_settings
from trueline.knowledge.operations import ARITHMETIC, families_of, function_of, given_to, meaning_of, scale_of
from trueline.knowledge.optimizers import optimizer_settings

__all__ = [
    "ARITHMETIC",
    "change_of",
    "default_settings",
    "families_of",
    "function_of",
    "given_to",
    "layer_settings",
    "loss_settings",
    "meaning_of",
    "optimizer_settings",
    "same_layer",
    "scale_of",
]
