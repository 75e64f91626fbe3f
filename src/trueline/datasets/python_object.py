"""A dataset that Python code makes: `module:name` of a torch Dataset, a sequence, a dict of arrays, or a function that
returns one of them. The module is imported as `python -m` would, from the current directory."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from trueline.datasets.columns import Chunk
from trueline.datasets.numpy_file import arrays_to_tables
from trueline.datasets.rows import Row, chunks_of
from trueline.datasets.table import Table
from trueline.errors import TruelineError


def python_tables(spec: str, limit: int | None = None) -> list[Table]:
    value = _value_of(spec)
    if isinstance(value, Mapping):
        return _mapping_tables(value, spec)
    if isinstance(value, np.ndarray):
        return arrays_to_tables({spec.partition(":")[2]: value}, spec, [])
    if hasattr(value, "to_dict") and hasattr(value, "columns") and hasattr(value, "iloc"):
        return arrays_to_tables({str(name): np.asarray(value[name]) for name in value.columns}, spec, [])
    if isinstance(value, tuple | list) and _are_arrays(value):
        names = ["x", "y"] if len(value) == 2 else [f"array_{place}" for place in range(len(value))]
        return arrays_to_tables(dict(zip(names, map(np.asarray, value), strict=True)), spec, [])
    length = _length(value)
    if length is None and not isinstance(value, Iterable):
        raise TruelineError(
            f"{spec} is a {type(value).__name__}, which has no samples to look at. Expected a Dataset, a sequence, a dict of "
            "arrays, or a function without arguments that returns one of them."
        )
    if length == 0:
        raise TruelineError(f"{spec} is empty: it has no samples. Check where it gets them from.")
    table = Table(spec, lambda: _chunks(value, spec, length, limit), row_word="sample")
    return [table]


def _value_of(spec: str) -> Any:
    module_name, _, path = spec.partition(":")
    here = os.getcwd()  # noqa: PTH109
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = importlib.import_module(module_name)
    except ImportError as problem:
        raise TruelineError(
            f"{module_name} of {spec!r} cannot be imported ({problem}). Expected module:name, from the directory in which the "
            f"module lies ({here} was searched too)."
        ) from problem
    except Exception as problem:
        raise TruelineError(
            f"{module_name} of {spec!r} failed while it was imported ({type(problem).__name__}: {problem}). "
            f"Try: python -c 'import {module_name}'"
        ) from problem
    for name in path.split("."):
        if not hasattr(value, name):
            known = ", ".join(each for each in dir(value) if not each.startswith("_"))
            raise TruelineError(f"{module_name} has no {name!r}. Expected module:name with one of: {known or 'nothing'}.")
        value = getattr(value, name)
    return _called(value, spec) if (callable(value) and not hasattr(value, "__getitem__")) or inspect.isclass(value) else value


def _called(function: Any, spec: str) -> Any:
    try:
        return function()
    except Exception as problem:
        raise TruelineError(
            f"{spec} failed when it was called without arguments ({type(problem).__name__}: {problem}). "
            "Give a function that needs none, or a dataset that is made already."
        ) from problem


def _mapping_tables(value: Mapping[Any, Any], spec: str) -> list[Table]:
    """A dict of arrays, or one of datasets by split."""
    arrays = {str(name): np.asarray(each) for name, each in value.items() if _is_array(each)}
    if not arrays:
        raise TruelineError(f"{spec} is a dict without arrays. Received the keys {', '.join(map(str, value))}.")
    return arrays_to_tables(arrays, spec, [])


def _is_array(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return False
    return isinstance(value, list | tuple) or (hasattr(value, "shape") and hasattr(value, "__array__"))


def _are_arrays(values: Iterable[Any]) -> bool:
    """Whether a tuple is (x, y) of whole arrays, rather than a sequence of samples."""
    found = list(values)
    shaped = all(hasattr(each, "shape") and len(each.shape) for each in found)
    return 1 < len(found) <= 4 and shaped and isinstance(values, tuple) and len({len(each) for each in found}) == 1


def _length(value: Any) -> int | None:
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None


def _chunks(dataset: Any, spec: str, length: int | None, limit: int | None) -> Iterator[Chunk]:
    total = min(each for each in (length, limit) if each is not None) if length is not None or limit is not None else None
    return chunks_of(_rows(dataset, spec, length, total), total)


def _rows(dataset: Any, spec: str, length: int | None, total: int | None) -> Iterator[Row]:
    if length is not None and hasattr(dataset, "__getitem__"):
        for place in range(total or 0):
            try:
                sample = dataset[place]
            except Exception as problem:
                raise TruelineError(f"{spec}[{place}] failed ({type(problem).__name__}: {problem}).") from problem
            yield _row(sample)
        return
    try:
        yield from map(_row, islice(iter(dataset), total))
    except TruelineError:
        raise
    except Exception as problem:
        raise TruelineError(f"Iterating over {spec} failed ({type(problem).__name__}: {problem}).") from problem


def _row(sample: Any) -> Row:
    """A sample as fields: the items of a dict, `x` and `label` of a pair, numbered items of anything longer."""
    if isinstance(sample, Mapping):
        return {str(name): _plain(value) for name, value in sample.items()}
    if hasattr(sample, "_asdict"):
        return {name: _plain(value) for name, value in sample._asdict().items()}
    if isinstance(sample, tuple | list) and len(sample) > 1 and not all(isinstance(each, float) for each in sample):
        names = ["x", "label"] if len(sample) == 2 else [f"item_{place}" for place in range(len(sample))]
        return dict(zip(names, map(_plain, sample), strict=True))
    return {"x": _plain(sample[0] if isinstance(sample, tuple | list) and len(sample) == 1 else sample)}


def _plain(value: Any) -> Any:
    """Tensors and pictures as arrays, and their scalars as numbers."""
    if value is None or isinstance(value, str | bytes | int | float | Mapping):
        return value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):
            value = value.float()
    array = np.asarray(value) if hasattr(value, "__array__") or hasattr(value, "__array_interface__") else value
    if isinstance(array, np.ndarray):
        return array.item() if array.ndim == 0 or (array.ndim == 1 and array.size == 1) else array
    return array
