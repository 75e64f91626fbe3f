"""ds.01: what is missing in each field."""

from __future__ import annotations

from trueline.checks.ds_01_missing_values import item
from trueline.datasets.sentinels import CHANCE
from trueline.datasets.summary import FieldSummary, TableSummary
from trueline.datasets.words import many, plain, share, some
from trueline.model import Evidence, Finding

_FIX = (
    "Find out why the values are missing. Then leave out the rows or fields, or fill them in (median, most frequent value), in "
    "the same way for training and inference. Numbers and words that stand for none have to become missing values first, as with "
    "na_values of pandas.read_csv."
)


def conclude(tables: list[TableSummary]) -> Finding:
    several = len(tables) > 1
    evidence: list[Evidence] = []
    noted: list[Evidence] = []
    certain = False
    affected: list[tuple[float, str]] = []
    for table in tables:
        prefix = f"{table.name}: " if several else ""
        r_writes_na = any("NA" in field.words for field in table.fields)
        for fault in table.faults:
            evidence.append(Evidence(prefix + fault))
            certain = True
        for field in table.fields:
            counted = alarming(field, na_is_missing=r_writes_na)
            if counted:
                evidence.append(_evidence(table, field, counted, prefix))
                affected.append(
                    (counted / max(1, field.count), f"{field.name} ({share(counted, field.count)}: {_kinds(field, 2)})")
                )
                certain = certain or field.type not in ("category", "text")
            elif field.missing:
                noted.append(Evidence(f"{prefix}{field.name}: {_kinds(field)}; free text, which may be meant to be empty."))
    rows = sum(table.rows for table in tables)
    fields = sum(len(table.fields) for table in tables)
    limits = _limits(rows)
    if not evidence:
        noted += [_doubtful(table, field) for table in tables for field in table.fields if field.doubtful]
        word = tables[0].row_word
        return item.no_problem(
            f"No missing values in {many(fields, 'field')} of {many(rows, word)}.", limits=limits, evidence=noted
        )
    worst = sorted(evidence, key=lambda each: -each.values.get("share", 1.0))
    if affected:
        named = some(words for _, words in sorted(affected, reverse=True))
        summary = f"{many(len(affected), 'field')} of {fields} {'lacks' if len(affected) == 1 else 'lack'} values: {named}."
    else:
        summary = evidence[0].text
    return item.problem(summary, confidence=0.95 if certain else 0.8, evidence=worst + noted, fix=_FIX, limits=limits)


def alarming(field: FieldSummary, *, na_is_missing: bool = False) -> int:
    """How many values are missing for certain. In free text an empty one can be meant."""
    if field.type in ("file", "nested", "bytes") or (field.type == "text" and field.role != "label"):
        return 0
    doubtful = field.doubtful.get("NA", 0) if na_is_missing else 0
    return field.missing + doubtful


def _evidence(table: TableSummary, field: FieldSummary, counted: int, prefix: str) -> Evidence:
    where = "" if field.first_missing is None else f"; first in {table.row_word} {field.first_missing:,}"
    values: dict[str, object] = {"field": field.name, "missing": counted, "share": counted / max(1, field.count)}
    for kind in ("null", "nan", "inf", "empty", "blank"):
        if getattr(field, kind):
            values[kind] = getattr(field, kind)
    if field.words:
        values["words"] = field.words
    if field.sentinels:
        values["sentinels"] = {plain(sentinel.value): sentinel.count for sentinel in field.sentinels}
    text = f"{prefix}{field.name} lacks {counted:,} of {field.count:,} values ({share(counted, field.count)}): {_kinds(field)}"
    return Evidence(f"{text}{where}.", values)


def _kinds(field: FieldSummary, most: int | None = None) -> str:
    """What stands in the places without a value; with `most` only so many kinds, and those without explanation."""
    parts = [
        f"{getattr(field, kind):,} {words}"
        for kind, words in (("null", "null"), ("nan", "NaN"), ("inf", "infinite"), ("empty", "empty"), ("blank", "blank"))
        if getattr(field, kind)
    ]
    parts += [f"{count:,} × {word!r}" for word, count in sorted(field.words.items(), key=lambda each: -each[1])[:4]]
    if field.doubtful.get("NA"):
        parts.append(f"{field.doubtful['NA']:,} × 'NA'")
    for sentinel in field.sentinels:
        others = "" if most else f" (the others lie within {plain(sentinel.low)} … {plain(sentinel.high)})"
        parts.append(f"{sentinel.count:,} × {plain(sentinel.value)}{others}")
    return ", ".join(parts[:most])


def _doubtful(table: TableSummary, field: FieldSummary) -> Evidence:
    words = ", ".join(f"{count:,} × {word!r}" for word, count in field.doubtful.items())
    return Evidence(f"{field.name}: {words}: categories, unless they stand for missing values in {table.name}.")


def _limits(rows: int) -> str:
    return (
        f"A single null, NaN, infinite or empty value, or word that stands for none, among {rows:,} rows would have been seen. "
        "A number that stands for none is seen when it lies further from the others than these are spread and repeats so "
        f"often that a smooth distribution would do so with a chance below {CHANCE:g}: three times among measured values, "
        "5 times for 99 among 1 … 5. Zeros are taken as meant. How the training handles missing values cannot be seen here."
    )
