"""Defaults are those of the installed frameworks."""

from __future__ import annotations

import pytest

from trueline.knowledge import default_settings


@pytest.mark.parametrize(
    ("kind", "mindspore", "pytorch", "setting", "values"),
    [
        ("activation", "GELU", "GELU", "form", ("tanh", "erf")),
        ("layer_norm", "LayerNorm", "LayerNorm", "eps", (1e-7, 1e-5)),
        ("batch_norm", "BatchNorm2d", "BatchNorm2d", "momentum", (0.1, 0.1)),
        ("conv", "Conv2d", "Conv2d", "padding", ("same", 0)),
        ("dropout", "Dropout", "Dropout", "p", (0.5, 0.5)),
    ],
)
def test_both_frameworks(kind: str, mindspore: str, pytorch: str, setting: str, values: tuple[object, object]) -> None:
    found = default_settings("mindspore", kind, mindspore)[setting], default_settings("pytorch", kind, pytorch)[setting]
    assert found == pytest.approx(values)


def test_what_is_not_there_has_none() -> None:
    assert default_settings("pytorch", "activation", "NoSuchLayer") == {}
    assert default_settings("another", "activation", "GELU") == {}
    assert default_settings("pytorch", "other", "GELU") == {}
