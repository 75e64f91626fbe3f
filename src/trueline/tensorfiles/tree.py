"""Tensors at any depth of a checkpoint, and which part of it is the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trueline import limits
from trueline.errors import Unreadable
from trueline.reading import shortened
from trueline.tensorfiles.torch_objects import TensorRef

# The usual names of the model's part, the more telling first; what is found under the others is no model's.
_MODEL_NAMES = ("model", "model_state_dict", "state_dict", "model_state", "net", "network", "module", "params", "weights", "ema")
_OTHERS = ("optim", "sched", "scaler", "rng", "loss", "hyper", "epoch", "step")
# As deep as the models in checkpoints lie, and as deep as is looked for them.
_MODEL_DEPTH = 16
_COUNTED_DEPTH = 4


def tensors_of(content: Any, where: str) -> Iterator[tuple[str, TensorRef]]:
    """All tensors in nested dicts, lists and tuples, with their dotted names.

    One object may stand at many places, and in itself: a small file can make more places than any machine can visit.
    """
    if isinstance(content, TensorRef):
        yield "tensor", content
        return
    places = items = 0
    # One after the other, without a list of all that waits.
    levels = [("", iter(_children(content)))]
    while levels:
        name, children = levels[-1]
        for key, value in children:
            items += 1
            is_place = isinstance(value, dict | list | tuple | TensorRef)
            places += is_place
            if places > limits.PICKLE_PLACES or items > limits.PICKLE_ITEMS:
                count = max(places, items) - 1
                raise Unreadable(f"{where} holds more than {count:,} objects in each other: that is no checkpoint.")
            if not is_place:
                continue
            full = f"{name}.{key}" if name else str(key)
            if len(full) > limits.NAME_CHARACTERS:
                raise Unreadable(f"{where} holds a name of more than {limits.NAME_CHARACTERS:,} characters: {shortened(full)}")
            if isinstance(value, TensorRef):
                yield full or "tensor", value
            elif len(levels) >= limits.PICKLE_DEPTH:
                raise Unreadable(f"{where} holds more than {limits.PICKLE_DEPTH} objects in each other: that is no checkpoint.")
            elif value:
                levels.append((full, iter(_children(value))))
                break
        else:
            levels.pop()


def model_of(content: Any) -> str:
    """The dotted name of the dict that holds the model's tensors; '' if that is the outermost."""
    path: list[str] = []
    node = content
    counted: dict[tuple[int, int], int] = {}
    while isinstance(node, dict) and len(path) < _MODEL_DEPTH:
        sizes = {key: _size(value, counted) for key, value in node.items() if isinstance(value, dict)}
        parts = {str(key): (value, sizes[key]) for key, value in node.items() if sizes.get(key)}
        direct = sum(isinstance(value, TensorRef) for value in node.values())
        if not parts:
            break
        chosen = min(parts, key=lambda name: (*_rank(name), -parts[name][1]))
        if direct >= parts[chosen][1]:
            break
        path.append(chosen)
        node = parts[chosen][0]
    return ".".join(path)


def _rank(name: str) -> tuple[int, int]:
    if name.lower() in _MODEL_NAMES:
        return 0, _MODEL_NAMES.index(name.lower())
    return (2, 0) if any(word in name.lower() for word in _OTHERS) else (1, 0)


def _size(node: dict[Any, Any], counted: dict[tuple[int, int], int], depth: int = _COUNTED_DEPTH) -> int:
    """How many tensors lie below, as deep as checkpoints are nested; each object is counted once, wherever it stands."""
    place = (id(node), depth)
    if place not in counted:
        below = [value for _, value in _children(node)]
        counted[place] = sum(isinstance(value, TensorRef) for value in below) + (
            sum(_size(value, counted, depth - 1) for value in below if isinstance(value, dict)) if depth else 0
        )
    return counted[place]


def _children(node: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(node, dict):
        return node.items()
    return enumerate(node) if isinstance(node, list | tuple) else ()
