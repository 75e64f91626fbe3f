"""Dumps of msprobe: `dump.json` describes the calls, `dump_tensor_data/` holds their tensors if these were dumped too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from trueline.errors import TruelineError
from trueline.tensorfiles.file import open_file
from trueline.tensorfiles.number_formats import number_format
from trueline.tensorfiles.source import TensorEntry, TensorSource, entry_of
from trueline.tensorfiles.stored import Stored

DESCRIPTION = "dump.json"
_TENSORS = "dump_tensor_data"
_STATISTICS = {"Max": "max", "Min": "min", "Mean": "mean", "Norm": "norm"}
# Where no rank is known, the folder is called after the process: another one in every run.
_PROCESS = re.compile(r"^proc\d+$")
# In file names of the tensors, arguments of all kinds are inputs.
_SIDES = {"input_args": "input", "input_kwargs": "input"}


def open_msprobe(root: Path, descriptions: list[Path]) -> TensorSource:
    """All dumps below a folder: of several steps and ranks, each under the name of its own folder."""
    source = TensorSource(root, "msprobe dump")
    for path in descriptions:
        try:
            content = msgspec.json.decode(path.read_bytes())
            calls = content["data"].items()
        except (OSError, msgspec.DecodeError, RecursionError, KeyError, TypeError, AttributeError) as problem:
            source.problems.append(f"{path} cannot be read as a description of a dump ({problem}). Copy or dump it again.")
            continue
        source.framework = content.get("framework", source.framework)
        below = "".join(f"{part}/" for part in path.parent.relative_to(root).parts if not _PROCESS.match(part))
        for call, sides in calls:
            for name, described in _described(sides, call):
                _add(source, path.parent, below + name, described)
    return source


def _described(node: Any, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The descriptions of tensors at any depth, named as msprobe names their files."""
    if isinstance(node, dict) and "shape" in node and "dtype" in node:
        yield name, node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _described(value, f"{name}.{_SIDES.get(key, key)}")
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from _described(value, f"{name}.{place}")


def _add(source: TensorSource, folder: Path, name: str, described: dict[str, Any]) -> None:
    shape = tuple(described["shape"] or ())
    dtype = str(described["dtype"]).rpartition(".")[2].lower()
    file = described.get("data_name")
    if file is None or file == "-1":
        found = {ours: described.get(theirs) for theirs, ours in _STATISTICS.items()}
        statistics = {key: float(value) for key, value in found.items() if isinstance(value, int | float)}
        source.add(TensorEntry(name, shape, dtype, 0, None, statistics), None)
        return
    path = folder / _TENSORS / Path(str(file)).name
    try:
        number_format(dtype)
        if not path.is_file():
            raise TruelineError(f"{path} is missing. Copy the whole dump.")  # noqa: TRY301 - told below
        # Opened once now, so that a damaged file is told of before anything is compared.
        opened = _file(path)
    except TruelineError as problem:
        source.problems.append(str(problem))
        return
    source.add(entry_of(name, opened.shape, opened.format.name), partial(_file, path))


def _file(path: Path) -> Stored:
    opened = open_file(path)
    if len(opened.entries) != 1:
        raise TruelineError(f"{path} holds {len(opened.entries)} tensors. Expected one.")
    return opened.stored(opened.entries[0].name)
