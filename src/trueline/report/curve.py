"""A curve drawn with characters: braille dots where the terminal can show them, stars where it cannot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from trueline.report.words import number

_BRAILLE_BASE = 0x2800
_BRAILLE_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_LOG_FROM_RATIO = 100.0
_MARK = "×"


def draw_curve(
    values: Sequence[float | None],
    *,
    width: int = 72,
    height: int = 8,
    log: bool | None = None,
    ends: tuple[int, int] | None = None,
    ascii_only: bool = False,
) -> list[str]:
    """The lines of a plot of one value per step, `width` characters wide with its axis labels.

    Many steps share a column: it spans their smallest to their largest value, so spikes are never averaged away. None is
    a gap; NaN and infinity are marked with × on the axis. `log` is chosen by the range when not given. `ends` are the
    numbers of the first and the last step.
    """
    if not values:
        return ["no values"]
    finite = [value for value in values if value is not None and math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    log = low > 0 and (_spans_decades(finite) if log is None else log)
    labels = _labels(low, high, log=log, height=height) if finite else [""] * height
    margin = max(len(label) for label in labels) + 2
    columns = max(1, width - margin)
    dots_across, dots_up = (columns, height) if ascii_only else (columns * 2, height * 4)

    grid = [[False] * dots_up for _ in range(dots_across)]
    marked = [False] * columns
    last: tuple[int, int] | None = None
    for column, chunk in enumerate(_chunks(values, dots_across)):
        if any(value is not None and not math.isfinite(value) for value in chunk):
            marked[column * columns // dots_across] = True
        heights = [_height(value, low, high, dots_up, log=log) for value in chunk if value is not None and math.isfinite(value)]
        if heights:
            bottom, top = min(heights), max(heights)
            if last is not None:
                before = _join(grid, last, (column, heights[0]))
                bottom, top = min(bottom, before), max(top, before)
            for dot in range(bottom, top + 1):
                grid[column][dot] = True
            last = (column, heights[-1])
        elif chunk:
            last = None

    draw = _star if ascii_only else _braille
    bar, corner, dash, mark = ("|", "+", "-", "x") if ascii_only else ("│", "└", "─", _MARK)
    lines = [
        f"{label:>{margin - 2}} {bar}{''.join(draw(grid, column, row) for column in range(columns)).rstrip()}"
        for row, label in zip(reversed(range(height)), labels, strict=True)
    ]
    axis = "".join(mark if each else dash for each in marked)
    lines.append(" " * (margin - 1) + corner + axis)
    start, end = (str(step) for step in ends or (0, len(values) - 1))
    between = "step" + (" (log scale)" if log else "")
    room = columns - len(start) - len(end)
    footer = start if len(values) == 1 else start + (between.center(room) if room > len(between) else " " * max(1, room)) + end
    lines.append(" " * margin + footer)
    return lines


def _spans_decades(values: list[float]) -> bool:
    """Whether the bulk of the values does: a single outlier near zero must not flatten the rest of the curve."""
    ordered = sorted(values)
    tail = len(ordered) // 20
    return bool(ordered) and ordered[-1 - tail] / ordered[tail] >= _LOG_FROM_RATIO


def _chunks(values: Sequence[float | None], columns: int) -> list[Sequence[float | None]]:
    """The values of each column. With fewer values than columns, each value gets one column and those between are empty."""
    count = len(values)
    if count >= columns:
        edges = [index * count // columns for index in range(columns + 1)]
        return [values[start:stop] for start, stop in pairwise(edges)]
    chunks: list[Sequence[float | None]] = [()] * columns
    for index, value in enumerate(values):
        chunks[index * (columns - 1) // max(1, count - 1)] = (value,)
    return chunks


def _join(grid: list[list[bool]], start: tuple[int, int], end: tuple[int, int]) -> int:
    """Draw the straight line between two columns' dots; gives the height that it has just before the second."""
    height = start[1]
    for column in range(start[0] + 1, end[0]):
        before, height = height, round(start[1] + (end[1] - start[1]) * (column - start[0]) / (end[0] - start[0]))
        # Steep lines skip dots; the column takes those between.
        between = range(before + 1, height + 1) if height > before else range(height, before) if height < before else (height,)
        for dot in between:
            grid[column][dot] = True
    return height


def _height(value: float, low: float, high: float, dots: int, *, log: bool) -> int:
    if log:
        value, low, high = math.log(value), math.log(low), math.log(high)
    if high == low:
        return dots // 2
    # Halves keep the span of the largest floats from overflowing.
    return round((value / 2 - low / 2) / (high / 2 - low / 2) * (dots - 1))


def _labels(low: float, high: float, *, log: bool, height: int) -> list[str]:
    """Axis labels, top row first: the largest value, the one halfway, the smallest."""
    labels = [""] * height
    if low == high:
        labels[max(0, height - 1 - height // 2)] = number(low)
        return labels
    labels[0], labels[-1] = number(high), number(low)
    if height >= 5:
        row = height // 2
        share = 1 - row / (height - 1)
        labels[row] = number(_between(low, high, share, log=log))
    return labels


def _between(low: float, high: float, share: float, *, log: bool) -> float:
    if log:
        return math.exp(math.log(low) * (1 - share) + math.log(high) * share)
    return low * (1 - share) + high * share


def _braille(grid: list[list[bool]], column: int, row: int) -> str:
    code = 0
    for across in range(2):
        for down in range(4):
            if grid[column * 2 + across][row * 4 + 3 - down]:
                code |= _BRAILLE_DOTS[across][down]
    return chr(_BRAILLE_BASE + code) if code else " "


def _star(grid: list[list[bool]], column: int, row: int) -> str:
    return "*" if grid[column][row] else " "
