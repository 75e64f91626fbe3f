"""Tensors at any depth of a checkpoint, and which part of it is the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueline.errors import TruelineError
from trueline.tensorfiles.torch_objects import TensorRef

# The usual names of the model's part, the more telling first; what is found under the others is no model's.
_MODEL_NAMES = ("model", "model_state_dict", "state_dict", "model_state", "net", "network", "module", "params", "weights", "ema")
_OTHERS = ("optim", "sched", "scaler", "rng", "loss", "hyper", "epoch", "step")
# One object may stand at many places; a small file could make more places of them than any machine can visit.
_MOST_NODES = 5_000_000


def tensors_of(content: Any, where: str) -> Iterator[tuple[str, TensorRef]]:
    """All tensors in nested dicts, lists and tuples, with their dotted names."""
    visited = 0
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        visited += 1
        if visited > _MOST_NODES:
            raise TruelineError(f"{where} holds more than {_MOST_NODES:,} objects in each other: that is no checkpoint.")
        name, node = waiting.pop()
        if isinstance(node, TensorRef):
            yield name or "tensor", node
        else:
            waiting += [(f"{name}.{key}" if name else str(key), value) for key, value in reversed(_children(node))]


def model_of(content: Any) -> str:
    """The dotted name of the dict that holds the model's tensors; '' if that is the outermost."""
    path: list[str] = []
    node = content
    while isinstance(node, dict):
        parts = {str(key): value for key, value in node.items() if isinstance(value, dict) and _size(value)}
        direct = sum(isinstance(value, TensorRef) for value in node.values())
        if not parts:
            break
        chosen = min(parts, key=lambda name: (*_rank(name), -_size(parts[name])))
        if direct >= _size(parts[chosen]):
            break
        path.append(chosen)
        node = parts[chosen]
    return ".".join(path)


def _rank(name: str) -> tuple[int, int]:
    if name.lower() in _MODEL_NAMES:
        return 0, _MODEL_NAMES.index(name.lower())
    return (2, 0) if any(word in name.lower() for word in _OTHERS) else (1, 0)


def _size(node: dict[Any, Any], depth: int = 4) -> int:
    """How many tensors lie below, as deep as checkpoints are nested."""
    below = [value for _, value in _children(node)]
    return sum(isinstance(value, TensorRef) for value in below) + (
        sum(_size(value, depth - 1) for value in below if isinstance(value, dict)) if depth else 0
    )


def _children(node: Any) -> list[tuple[Any, Any]]:
    if isinstance(node, dict):
        return list(node.items())
    return list(enumerate(node)) if isinstance(node, list | tuple) else []
