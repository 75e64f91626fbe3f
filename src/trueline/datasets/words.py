"""Numbers and names as sentences need them."""

from __future__ import annotations

from collections.abc import Iterable


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def share(part: int, whole: int) -> str:
    percent = 100 * part / max(1, whole)
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def some(names: Iterable[str], most: int = 3) -> str:
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def plain(value: float) -> str:
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
