"""Settings of layers mean the same in both frameworks' words: read from the installed versions."""

from __future__ import annotations

from typing import Any

import mindspore
import pytest
import torch

from trueline.adapters.mindspore import kinds as mindspore_kinds
from trueline.adapters.pytorch import kinds as pytorch_kinds
from trueline.knowledge import layer_settings
from trueline.model import Module


def settings_of(layer: Any) -> dict[str, Any]:
    kinds = pytorch_kinds if isinstance(layer, torch.nn.Module) else mindspore_kinds
    return layer_settings(
        Module(1, 1, "", "", type(layer).__name__, kinds.kind_of(layer), None, None, None, kinds.settings_of(layer))
    )


MS, PT = mindspore.nn, torch.nn


@pytest.mark.parametrize(
    ("mine", "reference"),
    [
        (lambda: MS.BatchNorm2d(4, eps=1e-5, momentum=0.9), lambda: PT.BatchNorm2d(4)),
        (lambda: MS.LayerNorm((4,), epsilon=1e-5), lambda: PT.LayerNorm(4)),
        (lambda: MS.Dropout(p=0.3), lambda: PT.Dropout(0.3)),
        (lambda: MS.Dropout(keep_prob=0.7), lambda: PT.Dropout(0.3)),
        (lambda: MS.Conv2d(3, 4, 3, pad_mode="pad", padding=1), lambda: PT.Conv2d(3, 4, 3, padding=1)),
        (lambda: MS.Conv2d(3, 4, 3, pad_mode="valid"), lambda: PT.Conv2d(3, 4, 3)),
        (lambda: MS.GELU(approximate=False), PT.GELU),
        (MS.GELU, lambda: PT.GELU(approximate="tanh")),
        (MS.SiLU, PT.SiLU),
        (lambda: MS.LeakyReLU(0.1), lambda: PT.LeakyReLU(0.1)),
    ],
)
def test_the_same(mine: Any, reference: Any) -> None:
    own, expected = settings_of(mine()), settings_of(reference())
    shared = own.keys() & expected.keys()
    assert shared
    assert {name: own[name] for name in shared} == pytest.approx({name: expected[name] for name in shared})


@pytest.mark.parametrize(
    ("mine", "reference", "setting"),
    [
        (lambda: MS.BatchNorm2d(4, momentum=0.1), lambda: PT.BatchNorm2d(4), "momentum"),
        (lambda: MS.LayerNorm((4,)), lambda: PT.LayerNorm(4), "eps"),
        (lambda: MS.Dropout(keep_prob=0.3), lambda: PT.Dropout(0.3), "p"),
        (lambda: MS.Conv2d(3, 4, 3), lambda: PT.Conv2d(3, 4, 3), "padding"),
        (MS.GELU, PT.GELU, "form"),
        (MS.ReLU, PT.GELU, "type"),
    ],
)
def test_defaults_that_differ(mine: Any, reference: Any, setting: str) -> None:
    assert settings_of(mine())[setting] != settings_of(reference())[setting]
