"""Which parameter belongs to which: real models of both frameworks, and properties that hold for all."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mindspore import nn as ms_nn
from torch import nn

from trueline.compare.files.parameters import Candidate, Pairing, pair_parameters
from trueline.errors import TruelineError


def named(shapes: dict[str, tuple[int, ...]]) -> list[Candidate]:
    return [Candidate(name, shape, "float32", order) for order, (name, shape) in enumerate(shapes.items())]


def with_content(arrays: dict[str, Any]) -> list[Candidate]:
    return [
        Candidate(name, array.shape, "float32", order, partial(np.asarray, array))
        for order, (name, array) in enumerate(arrays.items())
    ]


def of_torch(model: nn.Module) -> list[Candidate]:
    return with_content({name: tensor.numpy() for name, tensor in model.state_dict().items()})


def of_mindspore(cell: Any) -> list[Candidate]:
    return with_content({name: parameter.asnumpy() for name, parameter in cell.parameters_dict().items()})


def pairs_of(pairing: Pairing) -> dict[str, str]:
    return {pair.mine: pair.reference for pair in pairing.pairs}


class TorchNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3)
        self.bn2 = nn.BatchNorm2d(8)
        self.embedding = nn.Embedding(11, 16)
        self.norm = nn.LayerNorm(16)
        self.fc1 = nn.Linear(16, 16)
        self.fc2 = nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)


class MindSporeNet(ms_nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = ms_nn.Conv2d(1, 8, 3)
        self.bn1 = ms_nn.BatchNorm2d(8)
        self.conv2 = ms_nn.Conv2d(8, 8, 3, has_bias=True)
        self.bn2 = ms_nn.BatchNorm2d(8)
        self.embedding = ms_nn.Embedding(11, 16)
        self.norm = ms_nn.LayerNorm((16,))
        self.fc1 = ms_nn.Dense(16, 16)
        self.fc2 = ms_nn.Dense(16, 16)
        self.head = ms_nn.Dense(16, 3)


def test_mindspore_against_pytorch() -> None:
    pairing = pair_parameters(of_mindspore(MindSporeNet()), of_torch(TorchNet()))
    found = pairs_of(pairing)
    assert found["bn1.gamma"] == "bn1.weight"
    assert found["bn2.moving_variance"] == "bn2.running_var"
    assert found["norm.beta"] == "norm.bias"
    assert found["embedding.embedding_table"] == "embedding.weight"
    assert not pairing.unmatched_mine
    assert not pairing.unmatched_reference
    assert sorted(pairing.left_out_reference) == ["bn1.num_batches_tracked", "bn2.num_batches_tracked"]
    assert min(pair.confidence for pair in pairing.pairs) > 0.9


def test_a_checkpoint_of_a_training_cell() -> None:
    """The optimizer's states and counters are no parameters, and the loss cell's prefix is none of the model's."""
    cell, reference = MindSporeNet(), of_torch(TorchNet())
    wrapped = [Candidate(f"_backbone.{each.name}", each.shape, "", each.order) for each in of_mindspore(cell)]
    assert not pair_parameters(wrapped, reference).unmatched_reference
    moments = [Candidate(f"moments.{each.name}", each.shape) for each in of_mindspore(cell)]
    counters = named({"learning_rate": (), "global_step": (1,)})
    pairing = pair_parameters([*of_mindspore(cell), *moments, *counters], reference)
    assert not pairing.unmatched_mine
    assert len(pairing.left_out_mine) == len(moments) + 2


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "model.", "backbone.", "network."])
def test_wrappers(prefix: str) -> None:
    reference = of_torch(TorchNet())
    mine = [Candidate(prefix + each.name, each.shape, each.dtype, each.order) for each in reference]
    assert pairs_of(pair_parameters(mine, reference)) == {prefix + each.name: each.name for each in reference}


def test_sequential_indices_against_attributes() -> None:
    """Equal weights settle it; without content, the order of equal shapes does."""
    net = TorchNet()
    sequence = nn.Sequential(*net.children())
    by_index = {f"{place}.": f"{name}." for place, (name, _) in enumerate(net.named_children())}
    mine, reference = of_torch(sequence), of_torch(net)
    expected = {each.name: by_index[each.name.split(".")[0] + "."] + each.name.partition(".")[2] for each in mine}
    found = pair_parameters(mine, reference)
    trivial = {name for name in expected if name.endswith("tracked")}
    assert {one: other for one, other in pairs_of(found).items() if one not in trivial} == {
        one: other for one, other in expected.items() if one not in trivial
    }
    bare = [[Candidate(each.name, each.shape, "", each.order) for each in side] for side in (mine, reference)]
    guessed = pair_parameters(*bare)
    assert {one: other for one, other in pairs_of(guessed).items() if one not in trivial} == {
        one: other for one, other in expected.items() if one not in trivial
    }
    assert max(pair.confidence for pair in guessed.pairs if pair.how == "order") < 0.9


def test_content_wins_over_names_that_are_shifted() -> None:
    """A layer was put in front: every index moved by one, and every name now belongs to another layer."""
    torch.manual_seed(0)
    layers = [nn.Linear(8, 8) for _ in range(4)]
    mine = of_torch(nn.Sequential(nn.Linear(8, 8), *layers))
    reference = of_torch(nn.Sequential(*layers))
    found = pairs_of(pair_parameters(mine, reference))
    assert {one: other for one, other in found.items() if one[0] != "0"} == {
        f"{place + 1}.{what}": f"{place}.{what}" for place in range(4) for what in ("weight", "bias")
    }


def test_nearly_equal_and_transposed_content() -> None:
    generator = np.random.default_rng(0)
    arrays = {f"a{number}": generator.normal(size=(12, 12)).astype("f4") for number in range(5)}
    others = {
        f"b{number}": (array.T if number % 2 else array) + 0.01 * generator.normal(size=(12, 12)).astype("f4")
        for number, array in enumerate(arrays.values())
    }
    pairing = pair_parameters(with_content(arrays), with_content(dict(reversed(others.items()))))
    assert pairs_of(pairing) == {f"a{number}": f"b{number}" for number in range(5)}
    assert [pair.layout for pair in pairing.pairs] == ["same", "transposed", "same", "transposed", "same"]
    assert {pair.how for pair in pairing.pairs} == {"content"}


def test_constant_content_is_no_evidence() -> None:
    ones = {"x": np.ones((4, 4)), "y": np.ones((4, 4))}
    pairing = pair_parameters(with_content(ones), with_content({"p": np.ones((4, 4)), "q": np.ones((4, 4))}))
    assert {pair.how for pair in pairing.pairs} <= {"order"}


def test_nested_against_flat() -> None:
    mine = named({"encoder.layer1.conv.weight": (4, 4), "encoder.layer2.conv.weight": (4, 4), "head.weight": (4, 4)})
    reference = named({"head.weight": (4, 4), "layer2_conv.weight": (4, 4), "layer_1_conv.weight": (4, 4)})
    assert pairs_of(pair_parameters(mine, reference)) == {
        "encoder.layer1.conv.weight": "layer_1_conv.weight",
        "encoder.layer2.conv.weight": "layer2_conv.weight",
        "head.weight": "head.weight",
    }


def test_conv1d_of_mindspore_has_a_dimension_more() -> None:
    pairing = pair_parameters(of_mindspore(ms_nn.Conv1d(3, 5, 7)), of_torch(nn.Conv1d(3, 5, 7, bias=False)))
    assert [(pair.mine, pair.reference, pair.layout) for pair in pairing.pairs] == [("weight", "weight", "reshaped")]


def test_joined_projections_are_unmatched_with_a_suggestion() -> None:
    mine = named({"attn.qkv.weight": (24, 8), "attn.qkv.bias": (24,), "out.weight": (8, 8)})
    reference = named(
        {f"attn.{name}.{what}": (8, 8) if what == "weight" else (8,) for name in "qkv" for what in ("weight", "bias")}
        | {"out.weight": (8, 8)}
    )
    for sides in ((mine, reference), (reference, mine)):
        pairing = pair_parameters(*sides)
        assert len(pairing.pairs) == 1
        assert len(pairing.unmatched_mine) + len(pairing.unmatched_reference) == 8
        assert len(pairing.suggestions) == 2
        assert "attn.q.weight, attn.k.weight, attn.v.weight" in pairing.suggestions[0]


def test_what_has_no_counterpart_is_told() -> None:
    pairing = pair_parameters(named({"a.weight": (3, 3), "b.weight": (5, 5)}), named({"a.weight": (3, 3), "c.weight": (7, 7)}))
    assert (pairing.unmatched_mine, pairing.unmatched_reference) == (["b.weight"], ["c.weight"])


def test_the_same_name_with_another_shape_is_unmatched() -> None:
    pairing = pair_parameters(named({"head.weight": (10, 8)}), named({"head.weight": (5, 8)}))
    assert (pairing.unmatched_mine, pairing.unmatched_reference) == (["head.weight"], ["head.weight"])


def test_a_map_overrides() -> None:
    mine, reference = named({"a": (2, 2), "b": (2, 2)}), named({"a": (2, 2), "b": (2, 2)})
    pairing = pair_parameters(mine, reference, {"a": "b", "b": "a"})
    assert pairs_of(pairing) == {"a": "b", "b": "a"}
    with pytest.raises(TruelineError, match="'z'"):
        pair_parameters(mine, reference, {"a": "z"})
    with pytest.raises(TruelineError, match="shapes"):
        pair_parameters(named({"a": (2, 2)}), named({"b": (3, 3)}), {"a": "b"})


WORDS = st.sampled_from("conv fc attn block layer norm proj mlp 0 1 2".split())
NAMES = st.builds(
    lambda path, last: ".".join([*path, last]), st.lists(WORDS, min_size=1, max_size=3), st.sampled_from(["weight", "bias"])
)
SHAPES = st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=2).map(tuple)
MODELS = st.dictionaries(NAMES, SHAPES, min_size=1, max_size=10)


def sorted_pairs(pairing: Pairing, *, swapped: bool = False) -> list[tuple[str, str]]:
    return sorted((pair.reference, pair.mine) if swapped else (pair.mine, pair.reference) for pair in pairing.pairs)


def complete(pairing: Pairing, mine: Iterable[Candidate], reference: Iterable[Candidate]) -> bool:
    ours = [pair.mine for pair in pairing.pairs] + pairing.unmatched_mine + pairing.left_out_mine
    theirs = [pair.reference for pair in pairing.pairs] + pairing.unmatched_reference + pairing.left_out_reference
    return sorted(ours) == sorted(each.name for each in mine) and sorted(theirs) == sorted(each.name for each in reference)


@given(MODELS, MODELS)
def test_both_directions_give_the_same_pairs(one: dict[str, Any], other: dict[str, Any]) -> None:
    mine, reference = named(one), named(other)
    there, back = pair_parameters(mine, reference), pair_parameters(reference, mine)
    assert sorted_pairs(there) == sorted_pairs(back, swapped=True)
    assert complete(there, mine, reference)


@given(MODELS, st.randoms(use_true_random=False))
def test_the_order_of_the_names_does_not_matter(model: dict[str, Any], shuffle: random.Random) -> None:
    items = list(model.items())
    shuffle.shuffle(items)
    pairing = pair_parameters(named(model), named(dict(items)))
    assert pairs_of(pairing) == {name: name for name in model}


@given(MODELS, st.sampled_from(["module.", "_orig_mod.", "module._orig_mod."]))
def test_wrapped_names_find_their_own(model: dict[str, Any], prefix: str) -> None:
    wrapped = named({prefix + name: shape for name, shape in model.items()})
    assert pairs_of(pair_parameters(wrapped, named(model))) == {prefix + name: name for name in model}


@given(MODELS, st.randoms(use_true_random=False), st.integers(0, 2**31))
def test_content_finds_what_was_renamed_and_reordered(model: dict[str, Any], shuffle: random.Random, seed: int) -> None:
    generator = np.random.default_rng(seed)
    arrays = {name: generator.normal(size=(*shape, 16)) for name, shape in model.items()}
    names = [f"renamed_{number}.what" for number in range(len(arrays))]
    shuffle.shuffle(names)
    renamed = dict(zip(names, arrays.values(), strict=True))
    expected = dict(zip(arrays, names, strict=True))
    reordered = {name: renamed[name] for name in sorted(names)}
    assert pairs_of(pair_parameters(with_content(arrays), with_content(reordered))) == expected
