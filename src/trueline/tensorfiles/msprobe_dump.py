"""Dumps of msprobe: `dump.json` describes the calls, `dump_tensor_data/` holds their tensors if these were dumped too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from trueline import limits
from trueline.errors import TruelineError, Unreadable
from trueline.reading import read_whole, reading, shortened
from trueline.tensorfiles.file import open_file
from trueline.tensorfiles.number_formats import number_format
from trueline.tensorfiles.source import TensorEntry, TensorSource, count_of, entry_of
from trueline.tensorfiles.stored import Stored

DESCRIPTION = "dump.json"
_TENSORS = "dump_tensor_data"


class _Dump(msgspec.Struct):
    data: dict[str, msgspec.Raw]
    framework: str | None = None


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
            with reading(path, "Copy or dump it again."):
                dump = msgspec.json.decode(read_whole(path, limits.DUMP_DESCRIPTION_BYTES), type=_Dump)
        except TruelineError as problem:
            source.problem(str(problem))
            continue
        source.framework = dump.framework or source.framework
        below = "".join(f"{part}/" for part in path.parent.relative_to(root).parts if not _PROCESS.match(part))
        for call, sides in dump.data.items():
            with reading(path, "Copy or dump it again."):
                for name, described in _described(_decoded(sides, call), call):
                    _add(source, path.parent, below + name, described)
    return source


def _decoded(sides: msgspec.Raw, call: str) -> Any:
    """One call at a time: what is decoded takes many times its bytes."""
    if len(memoryview(sides)) > limits.DUMP_CALL_BYTES:
        raise Unreadable(f"its call {shortened(call)} is described in more than {limits.DUMP_CALL_BYTES:,} bytes")
    return msgspec.json.decode(sides)


def _described(node: Any, name: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """The descriptions of tensors at any depth, named as msprobe names their files."""
    if depth > limits.DUMP_DEPTH or len(name) > limits.NAME_CHARACTERS:
        raise Unreadable(f"what it describes is nested too deeply, or its names are too long: {shortened(name)}")
    if isinstance(node, dict) and "shape" in node and "dtype" in node:
        yield name, node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _described(value, f"{name}.{_SIDES.get(key, key)}", depth + 1)
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from _described(value, f"{name}.{place}", depth + 1)


def _add(source: TensorSource, folder: Path, name: str, described: dict[str, Any]) -> None:
    shape = msgspec.convert(described["shape"] or (), tuple[int, ...])
    count_of(shape)
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
        source.problem(str(problem))
        return
    source.add(entry_of(name, opened.shape, opened.format.name), partial(_file, path))


def _file(path: Path) -> Stored:
    opened = open_file(path)
    if len(opened.entries) != 1:
        raise TruelineError(f"{path} holds {len(opened.entries)} tensors. Expected one.")
    return opened.stored(opened.entries[0].name)
