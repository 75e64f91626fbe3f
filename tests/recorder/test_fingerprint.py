"""Fingerprints: equal for equal samples, different for different ones, whatever the type and the order."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from trueline.recorder.fingerprint import fingerprints

# A length at which a hash for short rows may give way to one for long rows.
BORDER = 2048
DTYPES = ["f4", "f8", "f2", "i8", "i4", "i2", "u1", "?", "c8"]


def prints(fields: list[NDArray[Any]]) -> NDArray[np.uint64]:
    """The fingerprints as the reader makes them of the bytes."""
    return np.frombuffer(fingerprints(fields), ">u8").astype(np.uint64)


def content(fields: list[NDArray[Any]], row: int) -> tuple[bytes, ...]:
    return tuple(np.ascontiguousarray(values[row]).tobytes() for values in fields)


@st.composite
def batches(draw: st.DrawFn) -> list[NDArray[Any]]:
    """One to three fields with the same number of rows, of few values, so that equal rows do occur."""
    rows = draw(st.integers(1, 12))
    fields = []
    for _ in range(draw(st.integers(1, 3))):
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        shape = draw(arrays.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=4))
        fields.append(draw(arrays.arrays(np.int8, (rows, *shape), elements=st.integers(0, 1))).astype(dtype))
    return fields


@given(batches())
@settings(max_examples=80)
def test_equal_when_and_only_when_the_bytes_are(fields: list[NDArray[Any]]) -> None:
    assert len(fingerprints(fields)) == 8 * len(fields[0])
    found = prints(fields)
    for one, other in itertools.combinations(range(len(found)), 2):
        assert (found[one] == found[other]) == (content(fields, one) == content(fields, other))


@given(batches(), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_do_not_depend_on_the_place_in_the_batch(fields: list[NDArray[Any]], random: Any) -> None:
    order = list(range(len(fields[0])))
    random.shuffle(order)
    shuffled = prints([values[order] for values in fields])
    np.testing.assert_array_equal(shuffled, prints(fields)[order])
    np.testing.assert_array_equal(prints([values[:1] for values in fields]), prints(fields)[:1])


@pytest.mark.parametrize("width", [1, 3, BORDER - 1, BORDER, BORDER + 1, 3 * BORDER])
def test_every_byte_counts_on_both_sides_of_the_border(width: int) -> None:
    row = np.random.default_rng(width).integers(0, 256, width, dtype=np.uint8)
    places = sorted({0, width // 2, width - 1})
    rows = np.stack([row, row, *(row.copy() for _ in places)])
    for number, place in enumerate(places):
        rows[2 + number, place] ^= 1
    found = prints([rows])
    assert found[0] == found[1]
    assert len(set(found.tolist())) == 1 + len(places)


@given(st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=60)
def test_zeros_of_different_lengths_differ(one: int, other: int) -> None:
    a, b = prints([np.zeros((1, one), np.uint8)]), prints([np.zeros((1, other), np.uint8)])
    assert (a[0] == b[0]) == (one == other)


def test_fields_are_told_apart_by_their_order() -> None:
    a, b = np.array([[1, 2]]), np.array([[3, 4]])
    assert fingerprints([a, b]) != fingerprints([b, a])
    assert fingerprints([a, a]) != fingerprints([b, b])


def test_a_field_that_repeats_another_does_not_cancel_it() -> None:
    """Language models are trained with labels that are a copy of the input."""
    tokens = np.random.default_rng(2).integers(0, 100, (1000, 12))
    assert len(np.unique(prints([tokens, tokens]))) == 1000
    assert len(np.unique(prints([tokens, np.ones_like(tokens), tokens]))) == 1000


@pytest.mark.parametrize("width", [8, 4000])
def test_views_are_read_as_they_look(width: int) -> None:
    values = np.random.default_rng(0).integers(0, 9, (width, 6)).astype(np.float32)
    np.testing.assert_array_equal(prints([values.T]), prints([values.T.copy()]))
    np.testing.assert_array_equal(prints([values[::2]]), prints([values[::2].copy()]))


def test_no_collisions_among_sixty_thousand_images() -> None:
    images = np.random.default_rng(0).integers(0, 4, (60_000, 8, 8), dtype=np.uint8)
    assert len(np.unique(images.reshape(60_000, -1), axis=0)) == 60_000
    assert len(np.unique(prints([images]))) == 60_000
    assert len(np.unique(prints([images.astype(np.float32)]))) == 60_000


@pytest.mark.parametrize(("dtype", "low"), [("f4", -1), ("f4", 0), ("f8", -1), ("f2", -1)])
@pytest.mark.parametrize("width", [18, 48])
def test_no_collisions_among_rows_of_two_values(dtype: str, low: int, width: int) -> None:
    """Floats such as 1 and -1 differ in one bit at the top: the rest of the hash has to come from somewhere."""
    numbers = np.unique(np.random.default_rng(0).integers(0, 1 << width, 200_000))
    rows = np.where((numbers[:, None] >> np.arange(width)) & 1, 1, low).astype(dtype)
    assert len(np.unique(prints([rows]))) == len(rows)


def test_no_collisions_among_tokens() -> None:
    tokens = np.random.default_rng(1).integers(0, 50_000, (60_000, 16), dtype=np.int64)
    assert len(np.unique(prints([tokens]))) == 60_000
    single = np.arange(200_000, dtype=np.int64)
    assert len(np.unique(prints([single]))) == len(single)


def test_the_same_on_every_machine_and_in_every_run() -> None:
    """Two runs are compared by these numbers, so they are part of the format."""
    assert fingerprints([np.array([[1.0, 2.0]], np.float32)]) == fingerprints([np.array([[1.0, 2.0]], "<f4")])
    assert prints([np.array([[1, 2, 3]], np.uint8)]).tolist() == [16991689376074199867]
    assert prints([np.zeros((1, 5000), np.uint8)]).tolist() == [10777845297059622303]


def test_batches_and_fields_without_content() -> None:
    assert fingerprints([np.zeros((0, 3))]) == b""
    assert len(set(prints([np.zeros((4, 0))]).tolist())) == 1
