"""Layers of two models are paired by what they are, not by what they are called."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from trueline.compare.layers import Layer
from trueline.compare.pairing import pair_layers, parameter_pairs
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


def test_fused_against_split_is_not_paired() -> None:
    mine = [layer(0, "qkv", "linear", {"weight": (24, 8)})]
    reference = [layer(place, name, "linear", {"weight": (8, 8)}) for place, name in enumerate("qkv")]
    pairs = pair_layers(mine, reference)
    assert not [pair for pair in pairs if pair.confidence > 0.3]


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
