"""Which field is the label, and which fields only number the rows."""

from __future__ import annotations

import numpy as np

from trueline.datasets.columns import Chunk, Column, Texts
from trueline.datasets.fields import Field
from trueline.datasets.summary import FieldSummary, LabelSummary
from trueline.errors import TruelineError

_LABEL_NAMES = (
    "label", "labels", "target", "targets", "class", "classes", "y", "y_train", "y_test", "y_val", "y_valid", "class_label",
    "train_labels", "test_labels", "label_id", "class_id", "fine_label", "outcome", "category",
)  # fmt: skip
_NUMBERING_NAMES = {"id", "index", "idx", "row", "row_id", "rowid", "uid", "uuid", "guid", "unnamed: 0", "column_0", "sample_id"}
_FEWEST_ROWS_NUMBERED = 20
# A class has several samples; a number with more distinct values than this is a quantity.
_MOST_NUMBER_CLASSES = 200
_FEWEST_PER_CLASS = 2.0


def label_field(chunk: Chunk, asked: str | None, of_format: str | None) -> tuple[str | None, bool]:
    """The name of the label and whether it was guessed."""
    names = list(chunk.columns)
    if asked is not None:
        if asked in names:
            return asked, False
        if asked.lstrip("-").isdigit() and -len(names) <= int(asked) < len(names):
            return names[int(asked)], False
        raise TruelineError(f"There is no field {asked!r}. Expected --label with one of: {', '.join(names[:40])}.")
    if of_format in names:
        return of_format, False
    lower = {name.lower().strip(): name for name in reversed(names)}
    return next((lower[name] for name in _LABEL_NAMES if name in lower), None), True


def numbering_fields(chunk: Chunk, label: str | None) -> list[str]:
    """Fields that make every row different without saying anything of it: row numbers, ids, file names."""
    return [name for name, column in chunk.columns.items() if name != label and _numbers_rows(name, column)]


def _numbers_rows(name: str, column: Column) -> bool:
    if isinstance(column, Texts) and column.kind == "id":
        return True
    if len(column) < _FEWEST_ROWS_NUMBERED:
        return False
    if not isinstance(column, Texts) and column.kind == "number" and column.values.dtype.kind in "iuf":
        steps = np.diff(column.values.astype(np.float64))
        if bool((steps == 1).all()):
            return True
    different = len(np.unique(column.identity)) == len(column)
    return different and (name.lower().strip() in _NUMBERING_NAMES or name.lower().endswith(("_id", "uuid")))


def label_summary(field: Field, summary: FieldSummary, *, guessed: bool) -> LabelSummary:
    """What kind of label it is, judged by how many different values it has and how often they come."""
    if summary.type in ("number", "array", "ragged", "time"):
        return LabelSummary(summary.name, guessed, "value")
    if field.distinct.overflowed or summary.free_text:
        return LabelSummary(summary.name, guessed, "value" if summary.type == "integer" else "many")
    counts = field.distinct.counts()
    present = sum(count for _, count in counts.values())
    if summary.type == "integer" and len(counts) > _MOST_NUMBER_CLASSES and present < 20 * len(counts):
        return LabelSummary(summary.name, guessed, "value")
    if len(counts) > 1 and present < _FEWEST_PER_CLASS * len(counts):
        return LabelSummary(summary.name, guessed, "many")
    ordered = sorted(counts.items(), key=lambda item: _order(item[1][0]))
    missing = {*summary.words, *summary.doubtful}
    named = {name: count for _, (name, count) in ordered if name.strip() not in missing}
    return LabelSummary(summary.name, guessed, "class", named, {value: name for value, (name, _) in ordered})


def _order(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
