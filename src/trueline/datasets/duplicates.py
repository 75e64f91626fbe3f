"""Rows that are the same, and rows that are the same but for their label, in bounded memory.

Of each row 24 bytes are kept: the identity of its features, that of its label, and its number. What does not fit goes to
temporary files, a row into the file that its identity chooses, so that equal rows meet again in one small file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from trueline.datasets.hashing import NOTHING, Hashes

_ROW = np.dtype([("features", np.uint64), ("label", np.uint64), ("row", np.uint64)])
_IN_MEMORY = 1 << 19
_FILES = 256
_MOST_EXAMPLES = 5


class Duplicates(msgspec.Struct):
    """`groups` sets of equal rows (features and label), with `extra` rows beyond the first of each. `conflicts` are sets of rows
    with the same features and more than one label, `conflicting` the rows in them. `pairs` counts pairs of rows with the
    same features. Examples are numbers of rows. `extra_by_label` counts the extra rows by the hash of their label."""

    groups: int = 0
    extra: int = 0
    conflicts: int = 0
    conflicting: int = 0
    pairs: int = 0
    examples: list[list[int]] = []
    conflict_examples: list[list[int]] = []
    extra_by_label: dict[int, int] = {}


class RowStore:
    """Collects the rows of a pass; use it as a context, which removes its files."""

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._limit = in_memory
        self._waiting: list[npt.NDArray[Any]] = []
        self._count = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, features: Hashes, labels: Hashes | None, first_row: int) -> None:
        rows = np.empty(len(features), _ROW)
        rows["features"] = features
        rows["label"] = NOTHING if labels is None else labels
        rows["row"] = np.arange(first_row, first_row + len(features), dtype=np.uint64)
        self._waiting.append(rows)
        self._count += len(rows)
        if self._count > self._limit:
            self._spill()

    def duplicates(self) -> Duplicates:
        found = Duplicates()
        if self._folder is None:
            _count_part(np.concatenate(self._waiting) if self._waiting else np.empty(0, _ROW), found)
            return found
        self._spill()
        for path in sorted(Path(self._folder.name).iterdir()):
            _count_part(np.fromfile(path, _ROW), found)
        return found

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="trueline-rows-")
        rows = np.concatenate(self._waiting) if self._waiting else np.empty(0, _ROW)
        self._waiting, self._count = [], 0
        places = (rows["features"] >> np.uint64(56)).astype(np.uint8)
        rows = rows[np.argsort(places, kind="stable")]
        edges = np.append(0, np.cumsum(np.bincount(places, minlength=_FILES)))
        for place in range(_FILES):
            part = rows[edges[place] : edges[place + 1]]
            if len(part):
                with Path(self._folder.name, f"{place:03}").open("ab") as file:
                    part.tofile(file)


def _count_part(rows: npt.NDArray[Any], found: Duplicates) -> None:
    if len(rows) < 2:
        return
    features = np.sort(rows["features"])
    repeated = np.unique(features[1:][features[1:] == features[:-1]])
    if not len(repeated):
        return
    # Nearly always few rows: only these are put in order with their labels.
    rows = rows[np.isin(rows["features"], repeated)]
    rows = rows[np.lexsort((rows["row"], rows["label"], rows["features"]))]
    starts = _starts(rows["features"])
    sizes = np.diff(np.append(starts, len(rows)))
    found.pairs += int((sizes * (sizes - 1) // 2).sum())

    same = (rows["features"][1:] == rows["features"][:-1]) & (rows["label"][1:] == rows["label"][:-1])
    extra = np.flatnonzero(same) + 1
    found.extra += len(extra)
    group_starts = np.flatnonzero(same & ~np.append(False, same[:-1]))
    found.groups += len(group_starts)
    for place in group_starts[: _MOST_EXAMPLES - len(found.examples)].tolist():
        found.examples.append([int(rows["row"][place]), int(rows["row"][place + 1])])
    for label, count in zip(*np.unique(rows["label"][extra], return_counts=True), strict=True):
        found.extra_by_label[int(label)] = found.extra_by_label.get(int(label), 0) + int(count)

    # Sorted by label: a set has more than one when its first and last differ. Rows without a label contradict nobody.
    known = rows["label"] != NOTHING
    rows = rows[known]
    if not len(rows):
        return
    starts = _starts(rows["features"])
    ends = np.append(starts[1:], len(rows))
    conflicting = rows["label"][starts] != rows["label"][ends - 1]
    found.conflicts += int(conflicting.sum())
    found.conflicting += int((ends - starts)[conflicting].sum())
    for start, end in zip(starts[conflicting].tolist(), ends[conflicting].tolist(), strict=True):
        if len(found.conflict_examples) == _MOST_EXAMPLES:
            break
        found.conflict_examples.append(sorted((int(rows["row"][start]), int(rows["row"][end - 1]))))


def _starts(keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
