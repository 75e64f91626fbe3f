"""The loss curve drawn with characters."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from trueline.report.curve import draw_curve

ANY_VALUE = st.one_of(st.none(), st.floats())


@given(st.lists(ANY_VALUE, min_size=1, max_size=300), st.integers(20, 120), st.integers(3, 12), st.booleans())
def test_any_values_fit_in_the_width(values: list[float | None], width: int, height: int, ascii_only: bool) -> None:
    lines = draw_curve(values, width=width, height=height, ascii_only=ascii_only)
    assert len(lines) == height + 2
    assert all(len(line) <= width for line in lines)


def test_one_point() -> None:
    lines = draw_curve([0.5])
    assert sum(_dots(line) for line in lines) == 1
    assert any(line.strip().startswith("0.5 ") for line in lines)
    assert lines[-1].strip() == "0"


def test_hundred_thousand_points_keep_their_spike() -> None:
    values = [1.0 + index % 7 * 0.01 for index in range(100_000)]
    values[54_321] = 30.0
    lines = draw_curve(values)
    assert lines[0].strip().startswith("30 ")
    assert _dots(lines[0]) > 0
    assert lines[-1].rstrip().endswith("99999")


def test_falling_curve_goes_from_upper_left_to_lower_right() -> None:
    lines = draw_curve([3.0, 2.0, 1.0], width=40, ascii_only=True)
    top, bottom = lines[0].partition("|")[2], lines[7].partition("|")[2]
    assert top.index("*") == 0
    assert bottom.rindex("*") == len(bottom) - 1


def test_nan_is_marked_and_interrupts_the_curve() -> None:
    lines = draw_curve([1.0, 2.0, math.nan, math.inf, 1.0], width=60)
    assert lines[-2].count("×") == 2
    gap = [line[35:45] for line in lines[:8]]
    assert not any(_dots(each) for each in gap)


def test_nothing_but_nan_has_an_axis_and_no_scale() -> None:
    lines = draw_curve([math.nan] * 4, width=40)
    assert lines[-2].count("×") == 4
    assert not any(_dots(line) for line in lines)


def test_gap_is_left_open() -> None:
    lines = draw_curve([1.0, 1.0, None, None, None, 1.0, 1.0], width=60)
    assert not any(_dots(line[30:40]) for line in lines)
    assert "×" not in lines[-2]


def test_log_scale_when_the_values_span_decades() -> None:
    assert "log scale" in draw_curve([10.0 ** (-index / 10) for index in range(60)])[-1]
    assert "log scale" not in draw_curve([2.3, 1.2, 0.6])[-1]
    assert "log scale" not in draw_curve([1.0] * 99 + [1e-9])[-1]
    assert "log scale" in draw_curve([2.3, 1.2, 0.6], log=True)[-1]
    assert "log scale" not in draw_curve([2.3, 0.0], log=True)[-1]


def test_no_values() -> None:
    assert draw_curve([]) == ["no values"]


def _dots(line: str) -> int:
    return sum((ord(character) - 0x2800).bit_count() for character in line if 0x2800 <= ord(character) < 0x2900)
