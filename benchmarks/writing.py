"""Tables as text: aligned for the terminal, Markdown for the documentation, and their place in a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """One line per row, the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    return [line(row) for row in rows]


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table, its first column to the left."""
    line = "|".join(["---", *["---:"] * (len(headings) - 1)])
    return [f"| {' | '.join(headings)} |", f"|{line}|", *(f"| {' | '.join(row)} |" for row in rows)]


def replace_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks of a page, and nothing else."""
    whole = page.read_text(encoding="utf-8")
    if whole.count(begin) != 1 or whole.count(end) != 1:
        raise SystemExit(f"Expected the marks {begin!r} and {end!r} once each in {page}. Put them around the place of the table.")
    before, rest = whole.split(begin)
    after = rest.split(end)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
