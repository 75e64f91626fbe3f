"""Numbers as people read them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from trueline.report.words import number, percent, seconds, size


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "–"), (3, "3"), (12345, "12,345"), (0.123456, "0.1235"), (math.nan, "NaN"), (-math.inf, "-inf"),
        (True, "True"), ("adam", "adam"), ([0.9, 0.999], "[0.9, 0.999]"), (1e-9, "1e-09"),
    ],
)  # fmt: skip
def test_number(value: Any, words: str) -> None:
    assert number(value) == words


@pytest.mark.parametrize(
    ("share", "words"), [(0, "0 %"), (0.001, "<1 %"), (0.256, "26 %"), (0.999, ">99 %"), (1, "100 %"), (None, "–")]
)
def test_percent_never_rounds_to_none_or_all(share: float | None, words: str) -> None:
    assert percent(share) == words


def test_durations_and_sizes() -> None:
    assert [seconds(value) for value in (0.0123, 4, 300, 10_000)] == ["12.3 ms", "4 s", "5 min", "2.8 h"]
    assert [size(value) for value in (999, 12_345, 20_000_000)] == ["999 B", "12.3 kB", "20 MB"]
