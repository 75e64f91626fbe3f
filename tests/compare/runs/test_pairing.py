"""Layers of two models are paired by what they are, not by what they are called."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trueline.compare.runs.layers import Layer, layers_of
from trueline.compare.runs.pairing import all_parameters, pair_layers, parameter_pairs
from trueline.model import Module, Parameter

Shapes = dict[str, tuple[int, ...]]
SHAPES: dict[str, Shapes] = {
    "conv": {"weight": (16, 3, 3, 3)},
    "batch_norm": {"weight": (16,), "bias": (16,), "running_mean": (16,), "running_var": (16,)},
    "linear": {"weight": (10, 64), "bias": (10,)},
    "activation": {},
}


def layer(place: int, path: str, kind: str, shapes: Shapes | None = None) -> Layer:
    module = Module(place + 1, 0, path, path, kind.title(), kind, None, None, None, {})
    parameters = {
        role: Parameter(
            100 * place + number, 0, place + 1, f"{path}.{role}", role, shape, "float32", True, False, None, None, None
        )
        for number, (role, shape) in enumerate((SHAPES[kind] if shapes is None else shapes).items())
    }
    return Layer(module, "model", parameters, place)


def named(pairs: object) -> dict[str, str]:
    return {pair.mine.module.path: pair.reference.module.path for pair in pairs}  # type: ignore[attr-defined]


def test_flat_against_nested() -> None:
    mine = [layer(0, "trunk.0.filters", "conv"), layer(1, "trunk.0.norm", "batch_norm"), layer(2, "head", "linear")]
    reference = [layer(0, "conv1", "conv"), layer(1, "bn1", "batch_norm"), layer(2, "fc", "linear")]
    assert named(pair_layers(mine, reference)) == {"trunk.0.filters": "conv1", "trunk.0.norm": "bn1", "head": "fc"}


def test_layer_that_the_other_side_lacks_has_no_pair() -> None:
    mine = [layer(0, "a", "conv"), layer(1, "b", "linear")]
    reference = [layer(0, "x", "conv"), layer(1, "y", "conv", {"weight": (8, 16, 5, 5)}), layer(2, "z", "linear")]
    assert named(pair_layers(mine, reference)) == {"a": "x", "b": "z"}


def test_equal_names_decide_where_all_names_are_equal() -> None:
    shapes = {"weight": (8, 8)}
    mine = [layer(0, "second", "linear", shapes), layer(1, "act", "activation"), layer(2, "first", "linear", shapes)]
    reference = [layer(0, "first", "linear", shapes), layer(1, "relu", "activation"), layer(2, "second", "linear", shapes)]
    assert named(pair_layers(mine, reference)) == {"first": "first", "second": "second", "act": "relu"}


def recurrent(place: int, path: str, *units: str) -> Layer:
    inner = {"weight_ih": (12, 4), "weight_hh": (12, 4)}
    shapes = {f"{role}{unit}": shape for unit in units or ("",) for role, shape in inner.items()}
    return layer(place, path, "recurrent", shapes)


def test_stacked_cells_against_one_recurrent_layer() -> None:
    mine = [recurrent(0, "cells.0"), recurrent(1, "cells.1"), layer(2, "out", "linear")]
    reference = [recurrent(0, "gru", "", "_l1"), layer(1, "fc", "linear")]
    found = all_parameters(mine, reference)
    assert found["model.cells.0.weight_ih"] == "model.gru.weight_ih"
    assert found["model.cells.1.weight_hh"] == "model.gru.weight_hh_l1"
    assert len(found) == 6
    assert len(all_parameters(reference, mine)) == 6


def test_layers_that_read_both_ways_against_single_ones() -> None:
    mine = [recurrent(0, "there"), recurrent(1, "back"), recurrent(2, "there2"), recurrent(3, "back2")]
    reference = [recurrent(0, "lstm", "", "_reverse", "_l1", "_l1_reverse")]
    found = all_parameters(mine, reference)
    assert found["model.back.weight_ih"] == "model.lstm.weight_ih_reverse"
    assert found["model.there2.weight_ih"] == "model.lstm.weight_ih_l1"
    assert found["model.back2.weight_ih"] == "model.lstm.weight_ih_l1_reverse"


def test_activations_as_functions_and_as_modules() -> None:
    mine = [layer(0, "a", "conv"), layer(1, "act", "activation"), layer(2, "b", "linear")]
    reference = [layer(0, "x", "conv"), layer(1, "z", "linear")]
    assert named(pair_layers(mine, reference)) == {"a": "x", "b": "z"}


def test_query_key_and_value_by_name_when_called_in_another_order() -> None:
    shapes = {"weight": (8, 8)}
    mine = [layer(place, f"attn.{name}", "linear", shapes) for place, name in enumerate(("k_proj", "q_proj", "v_proj"))]
    reference = [layer(place, f"attention.{name}", "linear", shapes) for place, name in enumerate(("query", "key", "value"))]
    assert named(pair_layers(mine, reference)) == {
        "attn.q_proj": "attention.query", "attn.k_proj": "attention.key", "attn.v_proj": "attention.value",
    }  # fmt: skip


def test_missing_bias_is_still_the_same_layer() -> None:
    mine = [layer(0, "head", "linear", {"weight": (10, 64)})]
    pairs = pair_layers(mine, [layer(0, "fc", "linear")])
    assert named(pairs) == {"head": "fc"}
    assert parameter_pairs(pairs) == {"model.head.weight": "model.fc.weight"}
    assert pairs[0].confidence < pair_layers([layer(0, "fc", "linear")], [layer(0, "fc", "linear")])[0].confidence


def test_a_joined_layer_whose_parts_do_not_fit_is_not_paired() -> None:
    mine = [layer(0, "qkv", "linear", {"weight": (24, 8)})]
    reference = [layer(place, name, "linear", {"weight": (6, 8)}) for place, name in enumerate("qkv")]
    assert not [pair for pair in pair_layers(mine, reference) if pair.confidence > 0.3]


def test_layers_of_equal_parameters_are_told_apart_by_what_they_give() -> None:
    shapes: Shapes = {"weight": (80, 16)}
    own = [("seen", (6, 16)), ("who", (16,)), ("what", (16,))]
    mine = [replace(layer(place, name, "embedding", shapes), gives=gives) for place, (name, gives) in enumerate(own)]
    other = [("user", (16,)), ("item", (16,)), ("bag", (6, 16))]
    reference = [replace(layer(place, name, "embedding", shapes), gives=gives) for place, (name, gives) in enumerate(other)]
    assert named(pair_layers(mine, reference)) == {"seen": "bag", "who": "user", "what": "item"}


@given(st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_renaming_all_layers_leaves_the_pairs(kinds: list[str], draw: random.Random) -> None:
    names = [f"{draw.choice('abcdefgh')}{draw.randint(0, 999)}" for _ in kinds]
    mine = [layer(place, name, kind) for place, (name, kind) in enumerate(zip(names, kinds, strict=True))]
    reference = [layer(place, f"layer{place}", kind) for place, kind in enumerate(kinds)]
    pairs = pair_layers(mine, reference)
    assert [(pair.mine.place, pair.reference.place) for pair in pairs] == [(place, place) for place in range(len(kinds))]


@given(st.lists(st.sampled_from(sorted(SHAPES)), max_size=8), st.lists(st.sampled_from(sorted(SHAPES)), max_size=8))
def test_every_layer_has_at_most_one_counterpart_of_its_kind(first: list[str], second: list[str]) -> None:
    a = [layer(place, f"a{place}", kind) for place, kind in enumerate(first)]
    b = [layer(place, f"b{place}", kind) for place, kind in enumerate(second)]
    pairs = pair_layers(a, b)
    assert all(pair.mine.module.kind == pair.reference.module.kind for pair in pairs)
    for side in ([pair.mine.place for pair in pairs], [pair.reference.place for pair in pairs]):
        assert len(set(side)) == len(side)
    assert bool(pairs) == bool({*first} & {*second})


def attention(names: tuple[str, ...], shapes: Shapes) -> list[Layer]:
    return [layer(place, f"attn.{name}", "linear", shapes) for place, name in enumerate(names)]


PROJECTION: Shapes = {"weight": (8, 8), "bias": (8,)}
JOINED: Shapes = {"weight": (24, 8), "bias": (24,)}


def test_query_key_and_value_against_one_projection() -> None:
    """In the order of a joined projection, whatever the order of calls; the output projection has the same shape."""
    mine = attention(("to_k", "to_q", "to_v", "to_out"), PROJECTION)
    reference = [layer(0, "mixing.qkv", "linear", JOINED), layer(1, "mixing.proj", "linear", PROJECTION)]
    pairs = pair_layers(mine, reference)
    assert {pair.mine.name: pair.reference.name for pair in pairs} == {
        "attn.to_q + attn.to_k + attn.to_v": "mixing.qkv",
        "attn.to_out": "mixing.proj",
    }
    found = parameter_pairs(pairs)
    assert found["model.attn.to_q.weight"] == "model.mixing.qkv.weight[0/3]"
    assert found["model.attn.to_k.bias"] == "model.mixing.qkv.bias[1/3]"
    back = parameter_pairs(pair_layers(reference, mine))
    assert back["model.mixing.qkv.weight"] == "model.attn.to_q.weight+model.attn.to_k.weight+model.attn.to_v.weight"


def test_projections_of_an_attention_of_the_framework() -> None:
    own: Shapes = {"in_proj_weight": (24, 8), "in_proj_bias": (24,)}
    reference = [layer(0, "att", "attention", own), layer(1, "att.out_proj", "linear", PROJECTION)]
    found = all_parameters(attention(("q", "k", "v", "out"), PROJECTION), reference)
    assert found["model.attn.v.weight"] == "model.att.in_proj_weight[2/3]"
    assert found["model.attn.out.weight"] == "model.att.out_proj.weight"


def test_layers_of_equal_shape_stay_apart_where_the_other_side_has_them_too() -> None:
    mine = attention(("a", "b", "c"), PROJECTION)
    assert len(pair_layers(mine, attention(("x", "y", "z"), PROJECTION))) == 3


def test_two_recurrent_layers_against_one_that_reads_both_ways() -> None:
    single: Shapes = {"weight_ih": (32, 4), "weight_hh": (32, 8), "bias_ih": (32,), "bias_hh": (32,)}
    both = single | {f"{role}_reverse": shape for role, shape in single.items()}
    mine = [layer(0, "left", "recurrent", single), layer(1, "right", "recurrent", single)]
    (pair,) = pair_layers(mine, [layer(0, "lstm", "recurrent", both)])
    assert not pair.computes_the_same
    found = parameter_pairs([pair])
    assert found["model.left.bias_hh"] == "model.lstm.bias_hh"
    assert found["model.right.weight_ih"] == "model.lstm.weight_ih_reverse"
    assert len(found) == 8


def test_convolution_of_patches_against_a_matrix() -> None:
    mine = [layer(0, "patches", "linear", {"weight": (16, 12), "bias": (16,)}), layer(1, "head", "linear")]
    reference = [layer(0, "embed", "conv", {"weight": (16, 3, 2, 2), "bias": (16,)}), layer(1, "fc", "linear")]
    assert all_parameters(mine, reference)["model.patches.weight"] == "model.embed.weight"


def test_a_layer_that_ends_with_its_own_activation_comes_before_it() -> None:
    """Its call ends after that of the activation."""
    dense, act, head = (
        Module(number, 0, path, path, kind.title(), kind, None, None, None, {})
        for number, path, kind in ((1, "fc", "linear"), (2, "fc.activation", "activation"), (3, "head", "linear"))
    )
    weights = [
        Parameter(number, 0, number, f"{path}.weight", "weight", (4, 4), "float32", True, False, None, None, None)
        for number, path in ((1, "fc"), (3, "head"))
    ]
    found = layers_of([dense, act, head], weights, {2: 0, 1: 1, 3: 2}, {0: "model"})
    assert [each.module.path for each in found] == ["fc", "fc.activation", "head"]
