"""Numbers and conclusions in the words and colours that every report uses."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from trueline.model import Conclusion, Location

MARKS: dict[Conclusion, tuple[str, str, str]] = {
    Conclusion.PROBLEM_FOUND: ("✗", "problem found", "bold red"),
    Conclusion.NO_PROBLEM: ("✓", "no problem", "green"),
    Conclusion.NOT_APPLICABLE: ("–", "not applicable", "dim"),
    Conclusion.NOT_CHECKED: ("?", "not checked", "yellow"),
    Conclusion.ERROR: ("!", "check failed", "bold magenta"),
}


def number(value: Any) -> str:
    """A number as short as it can be read: 4 significant digits, NaN and infinity spelt out."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.4g}"


def percent(share: float | None) -> str:
    """A share in whole percent; what is neither none nor all is never rounded to it."""
    if share is None or math.isnan(share):
        return "–"
    if 0 < share < 0.01:
        return "<1 %"
    if 0.99 < share < 1:
        return ">99 %"
    return f"{share:.0%}".replace("%", " %")


def seconds(value: float | None) -> str:
    """A duration in the unit in which people would say it."""
    if value is None:
        return "–"
    if value < 1:
        return f"{value * 1000:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h"


def size(count: float) -> str:
    """Bytes in the unit in which people would say them."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def many(count: int, noun: str) -> str:
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def source_line(location: Location) -> RenderableType:
    """A place in a script, with what stands there."""
    text = Text(str(location), style="cyan")
    if location.module:
        text.append(f"  in {location.module}", style="dim")
    if location.source:
        return Group(text, Text(f"    {location.source.strip()}", style="bold"))
    return text
