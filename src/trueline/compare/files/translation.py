"""Names and shapes of a model's weights in the words of another framework.

A layer is known by what it holds: batch normalisation by its running statistics, other normalisation by a one-dimensional
weight and bias of the same length, an embedding by its name and a matrix without a bias. A checkpoint of the target model
settles everything better than that.
"""

from __future__ import annotations

import re
from collections import defaultdict

import msgspec

from trueline.compare.conventions import is_no_parameter
from trueline.compare.files.parameters import Candidate, pair_parameters
from trueline.tensorfiles import TensorEntry

_TO_PYTORCH = {
    "gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var",
    "embedding_table": "weight",
}  # fmt: skip
_OF_NORMALISATION = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
_EMBEDDING = re.compile(r"(^|[._])(\w*emb\w*|wte|wpe|lookup)$", re.IGNORECASE)


class Translated(msgspec.Struct, frozen=True):
    """A tensor of the source under its name and in its shape at the target."""

    source: str
    name: str
    shape: tuple[int, ...]
    transposed: bool = False


class Translation(msgspec.Struct):
    """What is written, what is left out because the target has no such thing, and what lacks a counterpart at the target.
    `notes` say what was concluded from shapes and names alone."""

    tensors: list[Translated]
    left_out: list[str]
    missing: list[str]
    notes: list[str]


def translate(
    entries: list[TensorEntry], origin: str | None, target: str | None, fixed: dict[str, str] | None = None
) -> Translation:
    """The weights in the words of `target`, `pytorch` or `mindspore`; None keeps all names. `fixed` names some itself."""
    found = Translation([], [], [], [])
    layers: dict[str, dict[str, TensorEntry]] = defaultdict(dict)
    for entry in entries:
        layer, _, role = entry.name.rpartition(".")
        layers[layer][role] = entry
    for entry in entries:
        layer, _, role = entry.name.rpartition(".")
        if fixed and entry.name in fixed:
            found.tensors.append(Translated(entry.name, fixed[entry.name], entry.shape))
        elif target is not None and origin != target and is_no_parameter(entry.name):
            found.left_out.append(entry.name)
        elif target == "mindspore" and origin != target:
            found.tensors.append(_to_mindspore(entry, layer, role, layers[layer], found.notes))
        elif target == "pytorch" and origin != target:
            found.tensors.append(Translated(entry.name, _joined(layer, _TO_PYTORCH.get(role, role)), entry.shape))
        else:
            found.tensors.append(Translated(entry.name, entry.name, entry.shape))
    return found


def translate_like(entries: list[TensorEntry], like: list[TensorEntry], fixed: dict[str, str] | None = None) -> Translation:
    """The weights under the names and in the shapes of another checkpoint, paired as in a comparison."""
    # What the other checkpoint holds is not compared: it is of another training.
    pairing = pair_parameters(_candidates(entries), _candidates(like), fixed)
    shapes = {entry.name: entry.shape for entry in like}
    notes = [
        f"{pair.mine} is taken for {pair.reference} by {pair.how} ({pair.confidence:.0%})."
        for pair in pairing.pairs
        if pair.confidence < 0.85
    ]
    return Translation(
        [
            Translated(pair.mine, pair.reference, shapes[pair.reference], transposed=pair.layout == "transposed")
            for pair in pairing.pairs
        ],
        pairing.left_out_mine + pairing.unmatched_mine,
        pairing.unmatched_reference,
        notes + pairing.suggestions,
    )


def _candidates(entries: list[TensorEntry]) -> list[Candidate]:
    return [Candidate(entry.name, entry.shape, entry.dtype, place) for place, entry in enumerate(entries)]


def _to_mindspore(entry: TensorEntry, layer: str, role: str, held: dict[str, TensorEntry], notes: list[str]) -> Translated:
    shape = entry.shape
    if role in _OF_NORMALISATION and _normalises(held):
        role = _OF_NORMALISATION[role]
    elif role == "weight" and len(shape) == 2 and "bias" not in held and _EMBEDDING.search(layer):
        role = "embedding_table"
    elif role == "weight" and len(shape) == 3:
        shape = (*shape[:2], 1, shape[2])
        notes.append(f"{entry.name} is taken for a Conv1d, whose weight has the shape {list(shape)} in MindSpore.")
    elif role == "weight" and len(shape) == 1:
        notes.append(
            f"{entry.name} keeps its name: a one-dimensional weight without a bias may be gamma in MindSpore (--like tells)."
        )
    return Translated(entry.name, _joined(layer, role), shape)


def _normalises(held: dict[str, TensorEntry]) -> bool:
    if "running_mean" in held or "running_var" in held:
        return True
    weight, bias = held.get("weight"), held.get("bias")
    return weight is not None and bias is not None and len(weight.shape) == 1 and weight.shape == bias.shape


def _joined(layer: str, role: str) -> str:
    return f"{layer}.{role}" if layer else role
