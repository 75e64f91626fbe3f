"""What operations compute, whatever they are called and however their arguments are given."""

from __future__ import annotations

from typing import Any

import pytest

from trueline.knowledge import families_of, given_to, scale_of


@pytest.mark.parametrize(
    ("name", "settings", "families"),
    [
        ("einsum", {"args": ["bij,bjk->bik"]}, ["matmul"]),
        ("unflatten", {"args": [-1, [4, 6]]}, []),
        ("gelu", {"approximate": "tanh"}, ["gelu (tanh)"]),
        ("gelu", {}, ["gelu (erf)"]),
        ("mul", {}, ["mul"]),
        ("mul", {"args": [0.5]}, ["scale"]),
        ("truediv", {"args": [8.0]}, ["scale"]),
        ("scaled_dot_product_attention", {}, ["matmul", "scale", "softmax", "matmul"]),
        ("scaled_dot_product_attention", {"is_causal": True}, ["matmul", "scale", "mask", "softmax", "matmul"]),
        ("multi_head_attention_forward", {"attn_mask": "tensor"}, ["matmul", "scale", "mask", "softmax", "matmul"]),
    ],
)
def test_families(name: str, settings: dict[str, Any], families: list[str]) -> None:
    assert families_of(name, settings) == families


def test_scales() -> None:
    assert scale_of("mul", {"args": [0.125]}) == scale_of("div", {"args": [8]}) == 0.125
    assert scale_of("scaled_dot_product_attention", {}, [2, 4, 7, 16]) == 0.25
    assert scale_of("scaled_dot_product_attention", {"scale": 1.0}, [2, 4, 7, 16]) == 1.0
    assert scale_of("multi_head_attention_forward", {"args": [64, 4, None]}, [7, 2, 64]) == 0.25
    assert scale_of("mul", {}) is None


def test_defaults_are_what_is_given_where_nothing_is() -> None:
    assert given_to("avg_pool2d", {"args": [3, 1, 1]})["count_include_pad"] is True
    assert given_to("avg_pool2d", {"args": [[3, 3], None, 1, False, False, None]}) == {
        "kernel_size": 3, "stride": 3, "padding": 1, "ceil_mode": False, "count_include_pad": False, "divisor_override": None,
    }  # fmt: skip
    assert given_to("softmax", {"dim": -1, "_stacklevel": 3}, 4) == given_to("softmax", {"args": [3]}, 4)
    assert given_to("interpolate", {"mode": "bilinear", "align_corners": None})["align_corners"] is False
