"""One pass over a table: everything is counted chunk by chunk, in memory that does not depend on the number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from trueline.datasets import hashing
from trueline.datasets.columns import Chunk
from trueline.datasets.duplicates import RowStore
from trueline.datasets.fields import Field
from trueline.datasets.labels import label_field, label_summary, numbering_fields
from trueline.datasets.summary import TableSummary
from trueline.datasets.table import Table
from trueline.errors import TruelineError

_SAMPLE = 8192
# All fields together keep at most so many sampled values.
_SAMPLED_VALUES = 1 << 22
_WHOLE = 2.0**64

Progress = Callable[[float | None, int], None]


class RowSample:
    """A random draw of rows in one pass: those with the lowest hashes of their numbers, the same for every field."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._share = 1.0
        self._drawn = np.empty(0, np.uint64)

    def choose(self, first_row: int, rows: int) -> npt.NDArray[np.int64]:
        hashes = hashing.mix(np.arange(first_row, first_row + rows, dtype=np.uint64))
        chosen = np.flatnonzero(hashes < np.uint64(min(self._share * _WHOLE, _WHOLE - 2048)))
        self._drawn = np.append(self._drawn, hashes[chosen])
        return chosen

    def thinned(self) -> npt.NDArray[np.bool_] | None:
        """Which rows of the sample to keep, when it has grown too large."""
        if len(self._drawn) <= 2 * self._capacity:
            return None
        self._share *= self._capacity / len(self._drawn)
        kept = self._drawn < np.uint64(self._share * _WHOLE)
        self._drawn = self._drawn[kept]
        return kept


def examine(
    table: Table, *, label: str | None = None, limit: int | None = None, progress: Progress | None = None
) -> TableSummary:
    """`label` is the name of the field if the user gave one; `limit` ends the pass after so many rows."""
    fields: dict[str, Field] = {}
    label_name: str | None = None
    guessed = False
    ignored: list[str] = []
    rows, complete = 0, True
    sample = RowSample(_SAMPLE)
    with RowStore() as store:
        for chunk in table.read():
            if not fields:
                label_name, guessed = label_field(chunk, label, table.label)
                ignored = numbering_fields(chunk, label_name)
                sample = RowSample(max(256, min(_SAMPLE, _SAMPLED_VALUES // max(1, len(chunk.columns)))))
            chosen = sample.choose(rows, chunk.rows)
            _add_chunk(fields, chunk, rows, chosen)
            identities = {name: column.identity for name, column in chunk.columns.items() if name not in ignored}
            labels = identities.pop(label_name, None) if label_name is not None else None
            store.add(hashing.combine(identities, chunk.rows), labels, rows)
            if (kept := sample.thinned()) is not None:
                for field in fields.values():
                    field.keep(kept)
            rows += chunk.rows
            if progress is not None:
                progress(chunk.done, rows)
            if limit is not None and rows >= limit:
                complete = chunk.done == 1.0
                break
        if not rows:
            raise TruelineError(f"{table.name} has no rows. Check how it was written.")
        duplicates = store.duplicates()
    summaries = {name: field.finish() for name, field in fields.items()}
    for name in ignored:
        summaries[name].role = "numbers the rows"
    summary = None
    if label_name is not None:
        summaries[label_name].role = "label"
        summary = label_summary(fields[label_name], summaries[label_name], guessed=guessed)
    features = [field for name, field in fields.items() if name not in ignored and name != label_name]
    return TableSummary(
        table.name, rows, table.row_word, list(summaries.values()), summary, duplicates, _chance_pairs(features, rows), ignored,
        list(table.notes), list(table.faults), complete,
    )  # fmt: skip


def _add_chunk(fields: dict[str, Field], chunk: Chunk, first_row: int, chosen: npt.NDArray[np.int64]) -> None:
    for name, column in chunk.columns.items():
        if name not in fields:
            fields[name] = Field(name)
            fields[name].skip(first_row)
        fields[name].add(column, first_row, chosen)
    for name, field in fields.items():
        if name not in chunk.columns:
            field.skip(chunk.rows)


def _chance_pairs(features: list[Field], rows: int) -> float:
    """How many pairs of rows would be equal by chance if the fields had nothing to do with each other."""
    if not features:
        return math.inf
    chance = math.prod(field.chance_of_equal() for field in features)
    return chance * rows * (rows - 1) / 2
