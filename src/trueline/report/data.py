"""The report on a dataset: its fields, its classes as a bar chart, and the checklist items that it answers."""

from __future__ import annotations

import json
import shlex
import statistics
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueline.datasets.summary import FieldSummary, LabelSummary, TableSummary
from trueline.model import Diagnosis
from trueline.report.json import diagnosis_json, json_document
from trueline.report.terminal import checklist_table, details_of, verdict_panel
from trueline.report.words import many, number, percent

_MOST_FIELDS = 40
_MOST_CLASSES = 30
_BAR = 40


def print_data_report(console: Console, diagnosis: Diagnosis, tables: list[TableSummary], *, verbose: bool = False) -> None:
    for table in tables:
        _print_table(console, table, every=verbose)
        console.print()
    console.print(verdict_panel(diagnosis))
    console.print()
    console.print(checklist_table(diagnosis))
    if verbose:
        for finding in diagnosis.checklist:
            console.print()
            console.print(details_of(finding))
    else:
        console.print()
        console.print(Text(f" Evidence and limits: trueline data {shlex.quote(diagnosis.run)} -v", style="dim"), soft_wrap=True)


def data_json(diagnosis: Diagnosis, tables: list[TableSummary]) -> bytes:
    """The document of a diagnosis, with `tables`: what was counted of each field, of the label and of equal rows."""
    document = json.loads(diagnosis_json(diagnosis))
    del document["recording"], document["nonfinite"], document["comparison"]
    document["tables"] = [_table_document(table) for table in tables]
    return json_document(document)


def _table_document(table: TableSummary) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(table, str_keys=True)
    document["duplicates"].pop("extra_by_label")
    if document["label"] is not None:
        document["label"].pop("hashes")
    for summary, field in zip(table.fields, document["fields"], strict=True):
        field["missing"] = summary.missing
    return document


def _print_table(console: Console, table: TableSummary, *, every: bool) -> None:
    head = Text(table.name, style="bold")
    head.append(
        f"  {many(table.rows, table.row_word)} · {many(len(table.fields), 'field')} · {_label_words(table.label)}", "not bold"
    )
    console.print(head)
    if not table.complete:
        console.print(Text(f" Only the first {many(table.rows, table.row_word)} were read (--limit).", style="yellow"))
    for note in table.notes:
        console.print(Text(f" {note}", style="dim"))
    shown = table.fields if every else _worth_showing(table.fields)
    console.print(_fields(shown))
    if len(shown) < len(table.fields):
        left = len(table.fields) - len(shown)
        console.print(Text(f" {many(left, 'more field')} without anything to tell: -v shows all.", style="dim"))
    if table.label is not None and table.label.kind == "class" and table.label.counts:
        console.print()
        _print_classes(console, table.label, table.row_word, every=every)
    console.print()
    console.print(Text(f" {_repeats(table)}", style="dim" if not table.duplicates.conflicts else ""))


def _label_words(label: LabelSummary | None) -> str:
    if label is None:
        return "no label field known (--label FIELD)"
    return f"label {label.field}" + (" (guessed by its name)" if label.guessed else "")


def _worth_showing(fields: list[FieldSummary]) -> list[FieldSummary]:
    if len(fields) <= _MOST_FIELDS:
        return fields
    special = [
        field for field in fields if field.missing or field.doubtful or field.constant is not None or field.role == "label"
    ]
    chosen = {field.name for field in special[:_MOST_FIELDS]}
    chosen |= {field.name for field in fields[: max(3, _MOST_FIELDS // 2 - len(chosen))]}
    return [field for field in fields if field.name in chosen]


def _fields(fields: list[FieldSummary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True, padding=(0, 1), collapse_padding=True)
    table.add_column("field", overflow="fold")
    table.add_column("type", no_wrap=True)
    table.add_column("values", justify="right", no_wrap=True)
    table.add_column("missing", justify="right", no_wrap=True)
    table.add_column("distinct", justify="right", no_wrap=True)
    table.add_column("range", no_wrap=True)
    table.add_column("what", overflow="fold")
    for field in fields:
        missing = field.missing
        share = f"{number(missing)} ({percent(missing / field.count)})" if missing else "–"
        style = "" if not missing else "yellow" if field.free_text and field.role != "label" else "red"
        table.add_row(
            field.name,
            field.type,
            number(field.count),
            Text(share, style=style),
            number(field.distinct),
            _range(field),
            _what(field),
        )
    return table


def _range(field: FieldSummary) -> str:
    if field.low is None or field.type == "time":
        return ""
    return f"{number(field.low)} … {number(field.high)}"


def _what(field: FieldSummary) -> Text:
    parts: list[tuple[str, str]] = []
    if field.role != "feature":
        parts.append((field.role, "bold"))
    for name, word in (("null", "null"), ("nan", "NaN"), ("inf", "infinite"), ("empty", "empty"), ("blank", "blank")):
        if count := getattr(field, name):
            parts.append((f"{number(count)} {word}", "red"))
    parts += [(f"{number(count)} × {word!r}", "red") for word, count in list(field.words.items())[:4]]
    parts += [(f"{number(each.count)} × {number(each.value)} stand for none", "red") for each in field.sentinels]
    parts += [(f"{number(count)} × {word!r}?", "yellow") for word, count in field.doubtful.items()]
    if field.constant is not None:
        parts.append((f"constant: {field.constant:.30}", "yellow"))
    return Text(", ").join(Text(words, style=style) for words, style in parts)


def _print_classes(console: Console, label: LabelSummary, word: str, *, every: bool) -> None:
    counts = list(label.counts.values())
    total, most = sum(counts), max(counts)
    spread = statistics.pstdev(counts)
    console.print(
        Text(
            f" {len(counts)} classes of {label.field}: {total / len(counts):,.0f} ± {spread:,.0f} {word}s each (standard "
            f"deviation), rarest {percent(min(counts) / total)}"
        )
    )
    listed = list(label.counts.items())
    if len(listed) > _MOST_CLASSES and not every:
        listed = sorted(listed, key=lambda each: -each[1])
        listed = [*listed[: _MOST_CLASSES // 2], ("…", -1), *listed[-_MOST_CLASSES // 2 :]]
    width = min(24, max(len(name) for name, _ in listed))
    figures = len(f"{most:,}")
    for name, count in listed:
        if count < 0:
            console.print(f" {'…':>{width}}")
            continue
        bar = "█" * max(1, round(_BAR * count / most))
        shown = name if len(name) <= width else name[: width - 1] + "…"
        console.print(Text.assemble(f" {shown:>{width}} {count:>{figures},} ", (bar, "cyan"), f" {percent(count / total)}"))


def _repeats(table: TableSummary) -> str:
    found = table.duplicates
    copies = f"{many(found.extra, f'{table.row_word}')} {'is a copy' if found.extra == 1 else 'are copies'} of another"
    words = copies if found.extra else f"No {table.row_word} is a copy of another"
    if table.label is not None and table.label.kind == "class":
        words += (
            f"; {many(found.conflicts, 'set') if found.conflicts else 'no set'} of equal {table.row_word}s with different labels"
        )
    if table.ignored:
        words += f". Not compared: {', '.join(table.ignored[:5])}, which only number{'s' if len(table.ignored) == 1 else ''} them"
    return f"{words}."
