"""The parameters of one model, or of two side by side."""

from __future__ import annotations

from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueline.compare.files.parameters import Pairing
from trueline.report.json import json_document
from trueline.report.words import many, number, percent, size
from trueline.tensorfiles import TensorEntry

SCHEMA = "trueline.params/1"
_UNSURE = 0.85


class ParameterList(msgspec.Struct):
    """The parameters of one side, as a checkpoint or a run tells them."""

    title: str
    kind: str
    entries: list[TensorEntry]
    problems: list[str] = []

    @property
    def count(self) -> int:
        return sum(entry.count for entry in self.entries)

    @property
    def trainable(self) -> int | None:
        """How many values are trained; None if a file does not tell."""
        if any(entry.trainable is None for entry in self.entries):
            return None
        return sum(entry.count for entry in self.entries if entry.trainable)


def print_parameters(console: Console, side: ParameterList) -> None:
    _print_head(console, side)
    table = _table("name", "shape", "type", "values", "trained")
    for entry in side.entries:
        table.add_row(entry.name, _shape(entry), entry.dtype, number(entry.count), _trained(entry))
    console.print(table)
    _print_problems(console, side)


def print_side_by_side(console: Console, mine: ParameterList, reference: ParameterList, pairing: Pairing) -> None:
    for side in (mine, reference):
        _print_head(console, side)
    console.print()
    ours = {entry.name: entry for entry in mine.entries}
    theirs = {entry.name: entry for entry in reference.entries}
    table = _table("A", "shape", "B", "shape", "sure", "what")
    for pair in pairing.pairs:
        one, other = ours[pair.mine], theirs[pair.reference]
        style = "yellow" if pair.confidence < _UNSURE else ""
        table.add_row(
            one.name,
            _shape(one),
            other.name if other.name != one.name else Text("same", style="dim"),
            _shape(other) if other.shape != one.shape else "",
            Text(percent(pair.confidence), style=style),
            _what(one, other, pair.layout),
        )
    for name in pairing.unmatched_mine:
        table.add_row(name, _shape(ours[name]), Text("no counterpart", style="red"), "", "", "")
    for name in pairing.unmatched_reference:
        table.add_row(Text("no counterpart", style="red"), "", name, _shape(theirs[name]), "", "")
    console.print(table)
    for suggestion in pairing.suggestions:
        console.print(Text(f" Perhaps: {suggestion}"), soft_wrap=True)
    left_out = [*pairing.left_out_mine, *pairing.left_out_reference]
    if left_out:
        console.print(
            Text(f" Left out, being no parameters: {', '.join(left_out[:6])}{' …' if len(left_out) > 6 else ''}", style="dim")
        )
    for side in (mine, reference):
        _print_problems(console, side)


def parameters_json(mine: ParameterList, reference: ParameterList | None, pairing: Pairing | None) -> bytes:
    document = {
        "schema": SCHEMA,
        "mine": _document(mine),
        "reference": None if reference is None else _document(reference),
        "pairs": None if pairing is None else pairing.pairs,
        "unmatched": None if pairing is None else {"mine": pairing.unmatched_mine, "reference": pairing.unmatched_reference},
        "left_out": None if pairing is None else {"mine": pairing.left_out_mine, "reference": pairing.left_out_reference},
        "suggestions": [] if pairing is None else pairing.suggestions,
    }
    return json_document(document)


def _document(side: ParameterList) -> dict[str, Any]:
    return {
        "path": side.title,
        "kind": side.kind,
        "values": side.count,
        "trainable": side.trainable,
        "parameters": [
            {"name": each.name, "shape": each.shape, "dtype": each.dtype, "values": each.count, "trainable": each.trainable}
            for each in side.entries
        ],
        "problems": side.problems,
    }


def _print_head(console: Console, side: ParameterList) -> None:
    trained = "" if side.trainable is None else f", {number(side.trainable)} of them trained"
    total = sum(entry.bytes for entry in side.entries)
    words = f"  {side.kind} · {many(len(side.entries), 'tensor')} · {many(side.count, 'value')}{trained} · {size(total)}"
    console.print(Text.assemble((side.title, "bold"), words), soft_wrap=True)


def _print_problems(console: Console, side: ParameterList) -> None:
    for problem in side.problems:
        console.print(Text(f" {problem}", style="red"), soft_wrap=True)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), collapse_padding=True)
    for name in columns:
        table.add_column(name, justify="right" if name in {"values", "sure"} else "left", overflow="fold")
    return table


def _shape(entry: TensorEntry) -> str:
    return "×".join(map(str, entry.shape)) or "scalar"


def _trained(entry: TensorEntry) -> str:
    return {True: "yes", False: "no", None: "–"}[entry.trainable]


def _what(one: TensorEntry, other: TensorEntry, layout: str) -> str:
    parts = [] if layout == "same" else [layout]
    if one.dtype != other.dtype:
        parts.append(f"{one.dtype} against {other.dtype}")
    if None not in {one.trainable, other.trainable} and one.trainable != other.trainable:
        parts.append("trained on one side only")
    return ", ".join(parts)
