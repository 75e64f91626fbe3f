"""The comparison of two checkpoints, files or folders of tensors, for the terminal and as JSON."""

from __future__ import annotations

import math
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueline.compare.files.comparison import FileComparison, TensorPair
from trueline.report.json import json_document
from trueline.report.words import many, number, percent

SCHEMA = "trueline.compare/1"
_MOST_PAIRS = 15
_MOST_NAMES = 20
_UNSURE = 0.85


def print_comparison(console: Console, found: FileComparison, *, every: bool = False) -> None:
    _print_head(console, found)
    different = found.different
    shown = sorted(found.pairs, key=lambda each: -each.distance) if every else different[:_MOST_PAIRS]
    if shown:
        console.print()
        console.print(_pairs(shown))
        if not every and len(different) > len(shown):
            console.print(Text(f" {many(len(different) - len(shown), 'more pair')} that differ: -v shows all.", style="dim"))
    if found.same_training:
        console.print()
        _print_training(console, found, every=every)
    _print_unsure(console, found, every=every)
    for names, side in ((found.pairing.unmatched_mine, found.mine), (found.pairing.unmatched_reference, found.reference)):
        _print_names(console, f"{many(len(names), 'tensor')} only in {side}, without a counterpart:", names, "red", every=every)
    _print_names(console, "Perhaps:", found.pairing.suggestions, "", every=True)
    _print_names(console, "Could not be read:", found.problems, "red", every=True)
    left_out = [*found.pairing.left_out_mine, *found.pairing.left_out_reference]
    if left_out or any(found.other_tensors):
        console.print()
        beside = f"{many(sum(found.other_tensors), 'tensor')} beside the models, " if any(found.other_tensors) else ""
        console.print(
            Text(f" Left out: {beside}{many(len(left_out), 'counter or state')} of optimizers (--all compares them).", "dim")
        )


def comparison_json(found: FileComparison) -> bytes:
    document = {
        "schema": SCHEMA,
        "mine": {"path": found.mine, "kind": found.kinds[0]},
        "reference": {"path": found.reference, "kind": found.kinds[1]},
        "equal": found.equal,
        "tolerance": {"units": found.units},
        "counts": {
            "pairs": len(found.pairs),
            "equal": len(found.pairs) - len(found.different),
            "equal_bits": sum(each.difference is not None and each.difference.equal_bits for each in found.pairs),
            "different": len(found.different),
            "unmatched": found.unmatched,
        },
        "same_training": found.same_training,
        "pairs": [_pair_document(each) for each in sorted(found.pairs, key=lambda each: -each.distance)],
        "unmatched": {"mine": found.pairing.unmatched_mine, "reference": found.pairing.unmatched_reference},
        "left_out": {"mine": found.pairing.left_out_mine, "reference": found.pairing.left_out_reference},
        "suggestions": found.pairing.suggestions,
        "problems": found.problems,
    }
    return json_document(document)


def _pair_document(each: TensorPair) -> dict[str, Any]:
    return {
        "mine": each.pair.mine,
        "reference": each.pair.reference,
        "confidence": each.pair.confidence,
        "how": each.pair.how,
        "layout": each.pair.layout,
        "shape": each.shape,
        "reference_shape": each.reference_shape,
        "dtype": each.dtype,
        "reference_dtype": each.reference_dtype,
        "equal": each.equal,
        "tolerance": each.tolerance,
        "difference": each.difference,
        "statistics": each.statistics,
        "problem": each.problem,
    }


def _print_head(console: Console, found: FileComparison) -> None:
    console.print(Text.assemble((found.mine, "bold"), f"  {found.kinds[0]}"), soft_wrap=True)
    console.print(Text.assemble((found.reference, "bold"), f"  {found.kinds[1]}"), soft_wrap=True)
    different = len(found.different)
    same = sum(each.difference is not None and each.difference.equal_bits for each in found.pairs)
    parts = [f"{many(len(found.pairs), 'pair')}: {number(same)} equal bit by bit"]
    if rounding := len(found.pairs) - different - same:
        parts.append(f"{number(rounding)} within the tolerance")
    if different:
        parts.append(f"{number(different)} different")
    if found.unmatched:
        parts.append(f"{many(found.unmatched, 'tensor')} without a counterpart")
    if found.problems:
        parts.append(f"{many(len(found.problems), 'problem')} in reading")
    mark, style = ("✓ Equal", "green") if found.equal else ("✗ Not equal", "bold red")
    console.print(Text.assemble((f" {mark}. ", style), ", ".join(parts) + "."))


def _pairs(pairs: list[TensorPair]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("tensor", overflow="fold")
    table.add_column("shape", no_wrap=True)
    for name in ("max diff", "rel. L2", "cosine", "differ", "signs"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what", overflow="fold")
    for each in pairs:
        name = each.pair.mine if each.pair.mine == each.pair.reference else f"{each.pair.mine} = {each.pair.reference}"
        shape = "×".join(map(str, each.shape)) or "scalar"
        table.add_row(name, shape, *_figures(each), _what(each))
    return table


def _figures(each: TensorPair) -> list[str]:
    found = each.difference
    if found is None:
        return ["–"] * 5
    share = percent(found.differing / found.count) if found.count else "–"
    cosine = "–" if math.isnan(found.cosine) else f"{found.cosine:.6f}"
    return [number(found.max_abs), number(found.relative_l2), cosine, share, number(found.sign_flips)]


def _what(each: TensorPair) -> Text:
    parts = []
    if each.problem is not None:
        return Text(each.problem, style="red")
    if each.dtype != each.reference_dtype:
        parts.append(f"{each.dtype} against {each.reference_dtype}")
    if each.pair.layout != "same":
        parts.append(each.pair.layout)
    if each.statistics is not None:
        parts.append("by statistics: " + ", ".join(f"{name} {number(value)}" for name, value in each.statistics.items()))
    if each.difference is not None:
        for word, counts in (("NaN", each.difference.nan), ("infinite", each.difference.inf)):
            if any(counts):
                parts.append(f"{word}: {number(counts[0])} against {number(counts[1])}")
    return Text(", ".join(parts), style="" if each.equal else "red" if "NaN" in " ".join(parts) else "")


def _print_training(console: Console, found: FileComparison, *, every: bool) -> None:
    """Two checkpoints of one training: what moved between them, what stood still, and what is broken."""
    changed = [each for each in found.pairs if each.difference is not None and not each.difference.equal_bits]
    still = [each.pair.mine for each in found.pairs if each.difference is not None and each.difference.equal_bits]
    broken = [
        each.pair.mine for each in found.pairs if each.difference is not None and any(each.difference.nan + each.difference.inf)
    ]
    console.print(Text(f" As two checkpoints of one training: {number(len(changed))} changed, {number(len(still))} did not."))
    if changed:
        _print_names(console, "Did not change:", still, "yellow", every=every)
    _print_names(console, "Hold NaN or infinite values:", broken, "red", every=every)


def _print_unsure(console: Console, found: FileComparison, *, every: bool) -> None:
    unsure = [
        f"{each.pair.mine} = {each.pair.reference} ({percent(each.pair.confidence)}, by {each.pair.how})"
        for each in found.pairs
        if each.pair.confidence < _UNSURE
    ]
    _print_names(console, "Paired by guess; a map settles it (--write-map, then --map):", unsure, "yellow", every=every)


def _print_names(console: Console, title: str, names: list[str], style: str, *, every: bool) -> None:
    if not names:
        return
    console.print()
    console.print(Text(f" {title}", style=style))
    shown = names if every else names[:_MOST_NAMES]
    for name in shown:
        console.print(Text(f"   {name}"), soft_wrap=True)
    if len(shown) < len(names):
        console.print(Text(f"   … {number(len(names) - len(shown))} more: -v shows all.", style="dim"))
