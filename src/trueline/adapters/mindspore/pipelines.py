"""Dataset pipelines: what is read, in which order, and what is done to it, from the tree of operations."""

from __future__ import annotations

import weakref
from inspect import isfunction
from typing import Any

import msgspec
from mindspore.dataset import config

_MOST_OPERATIONS = 32


class Pipeline(msgspec.Struct, frozen=True):
    """What is told of a pipeline as the loader that it is."""

    name: str
    length: int | None
    batch_size: int | None
    sampler: str | None
    settings: dict[str, Any]


def described(dataset: Any) -> Pipeline:
    nodes = _nodes(dataset)
    leaf = nodes[-1]
    batch = next((node for node in nodes if type(node).__name__ in {"BatchDataset", "PaddedBatchDataset"}), None)
    batch_size = getattr(batch, "batch_size", None)
    shuffle = next((node for node in nodes if type(node).__name__ == "ShuffleDataset"), None)
    sampler = getattr(leaf, "sampler", None)
    sampler_name = type(sampler).__name__ if sampler is not None else None
    if sampler_name is None:
        sampler_name = "RandomSampler" if getattr(leaf, "shuffle_flag", 0) or shuffle is not None else "SequentialSampler"
    return Pipeline(
        name=type(leaf).__name__,
        length=_length(leaf),
        batch_size=batch_size if isinstance(batch_size, int) else None,
        sampler="ShuffleDataset" if shuffle is not None and sampler_name == "SequentialSampler" else sampler_name,
        settings={
            "drop_last": getattr(batch, "drop_remainder", None),
            "workers": getattr(leaf, "num_parallel_workers", None) if getattr(leaf, "python_multiprocessing", False) else 0,
            "batch_sampler": "BatchSampler",
            "sampler_settings": _sampler_settings(sampler),
            "weighted": sampler_name == "WeightedRandomSampler",
            "shuffle_buffer": getattr(shuffle, "buffer_size", None),
            "draws_in_parallel": any(map(_draws_in_parallel, nodes)),
            "pipeline": [_operation(node) for node in reversed(nodes)][:_MOST_OPERATIONS],
        },
    )  # fmt: skip


def source_of(dataset: Any) -> Any:
    """The object that the data comes from: two pipelines over one are two views of the same data."""
    leaf = _nodes(dataset)[-1]
    source = getattr(leaf, "source", None)
    try:
        weakref.ref(source)
    except TypeError:
        return leaf
    return leaf if source is None else source


def operations_of(dataset: Any) -> list[tuple[str, Any]]:
    """The operations of a pipeline by name (`Shuffle`, `Map`, `Batch`), the source first."""
    return [(type(node).__name__.removesuffix("Dataset"), node) for node in reversed(_nodes(dataset))][:_MOST_OPERATIONS]


def _nodes(dataset: Any) -> list[Any]:
    """From the last operation to the source, along the first input of each."""
    nodes = [dataset]
    while getattr(nodes[-1], "children", None):
        nodes.append(nodes[-1].children[0])
    return nodes


def _operation(node: Any) -> str:
    """`Map(Rescale, Normalize: image)`, `Batch(32)`, `Shuffle(1000)`."""
    name = type(node).__name__.removesuffix("Dataset")
    operations = getattr(node, "operations", None)
    if operations is not None:
        given = operations if isinstance(operations, list | tuple) else [operations]
        inside = ", ".join(getattr(one, "__name__", type(one).__name__) for one in given)
        columns = getattr(node, "input_columns", None) or []
        return f"{name}({inside}: {', '.join(map(str, columns))})"
    size = getattr(node, "buffer_size", None) or getattr(node, "batch_size", None)
    return f"{name}({size})" if isinstance(size, int) else name


def _draws_in_parallel(node: Any) -> bool:
    """Whether samples go through operations that may draw random numbers in several threads or processes at a time."""
    operations = getattr(node, "operations", None)
    workers = getattr(node, "num_parallel_workers", None) or config.get_num_parallel_workers()
    if operations is None or workers == 1:
        return False
    given = operations if isinstance(operations, list | tuple) else [operations]
    return any(callable(one) and (isfunction(one) or "Random" in type(one).__name__) for one in given)


def _length(leaf: Any) -> int | None:
    source = getattr(leaf, "source", None)
    try:
        return len(source) if source is not None and hasattr(source, "__len__") else None
    except TypeError:
        return None


def _sampler_settings(sampler: Any) -> dict[str, Any]:
    names = {"num_shards": "num_replicas", "shard_id": "rank"}
    return {
        names.get(name.lstrip("_"), name.lstrip("_")): value
        for name, value in getattr(sampler, "__dict__", {}).items()
        if isinstance(value, bool | int | float | str)
    }
