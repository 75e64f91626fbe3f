"""Folders of tensors: plain ones, parts of one checkpoint, and those of dump tools."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import msgspec

from trueline.errors import TruelineError
from trueline.tensorfiles.file import SUFFIXES, open_file
from trueline.tensorfiles.msprobe_dump import DESCRIPTION, open_msprobe
from trueline.tensorfiles.source import TensorSource

# One of the files over which a large checkpoint is spread: its tensors have their names within the whole.
_PART = re.compile(r"-\d{5}-of-\d{5}$")
# An operator's dump of MindSpore: type.name.task.stream.time.input-or-output.slot.format
_OPERATOR = re.compile(r"^(?P<name>.+)\.\d+\.\d+\.(?P<time>\d+)\.(?P<side>input|output)\.(?P<slot>\d+)\..+$")
# What TroubleShooter and MindSpore's TensorDump save: the number of the call, and the name it was given.
_NUMBERED = re.compile(r"^(?P<number>\d+)_(?P<name>.+)$")


def open_folder(root: Path) -> TensorSource:
    """All tensors below a folder. A file that cannot be read is a problem, and the rest is still read."""
    if descriptions := sorted(root.rglob(DESCRIPTION)):
        return open_msprobe(root, descriptions)
    files = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not files:
        raise TruelineError(f"{root} holds no file of tensors. Expected files that end in {', '.join(SUFFIXES)}.")
    arrays = [path for path in files if path.suffix.lower() == ".npy"]
    if arrays and all(_OPERATOR.match(path.stem) for path in arrays):
        return _opened(root, "MindSpore dump", _in_order_of_time(root, arrays), "mindspore")
    if arrays and len(arrays) == len(files) and all(_NUMBERED.match(path.stem) for path in arrays):
        return _opened(root, "numbered arrays", _in_order_of_number(root, arrays))
    return _opened(root, "folder", [(path, _plain_name(root, path)) for path in files])


def _opened(root: Path, kind: str, files: list[tuple[Path, str]], framework: str | None = None) -> TensorSource:
    source = TensorSource(root, kind, framework)
    frameworks = set()
    for path, name in files:
        try:
            opened = open_file(path)
        except TruelineError as refused:
            source.problem(str(refused))
            continue
        for problem in opened.problems:
            source.problem(problem)
        frameworks.add(opened.framework)
        # A file with one array or one bare tensor is that tensor; others hold several.
        alone = len(opened.entries) == 1 and opened.entries[0].name == path.stem
        for entry in opened.model_entries:
            full = name if alone else f"{name}.{entry.name}" if name else entry.name
            source.add(msgspec.structs.replace(entry, name=full), partial(opened.stored, opened.full_name(entry.name)))
    if framework is None and len(frameworks) == 1:
        source.framework = frameworks.pop()
    return source


def _plain_name(root: Path, path: Path) -> str:
    if _PART.search(path.stem):
        return ""
    return path.relative_to(root).with_suffix("").as_posix().replace("/", ".")


def _in_order_of_time(root: Path, files: list[Path]) -> list[tuple[Path, str]]:
    """Task, stream and time differ from run to run and are left out of the names."""
    found = []
    for path in files:
        match = _OPERATOR.match(path.stem)
        if match is not None:
            name = f"{match['name']}.{match['side']}.{match['slot']}"
            found.append((path.parent, int(match["time"]), path, _below(root, path, name)))
    return [(path, name) for _, _, path, name in sorted(found)]


def _in_order_of_number(root: Path, files: list[Path]) -> list[tuple[Path, str]]:
    found = []
    for path in files:
        match = _NUMBERED.match(path.stem)
        if match is not None:
            found.append((path.parent, int(match["number"]), path, _below(root, path, match["name"])))
    return [(path, name) for _, _, path, name in sorted(found)]


def _below(root: Path, path: Path, name: str) -> str:
    parent = path.parent.relative_to(root).as_posix()
    return name if parent == "." else f"{parent}/{name}"
