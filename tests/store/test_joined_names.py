"""Names that stand for several tensors, or for a part of one."""

from __future__ import annotations

import numpy as np

from trueline.store.joined_names import content_of, first_of, in_parts

HELD = {"q": np.zeros((2, 3)), "k": np.ones((2, 3)), "qk": np.arange(12).reshape(4, 3), "count": np.array(3)}


def test_several_one_after_another() -> None:
    found = content_of("q+k", HELD.get)
    assert found is not None
    assert found.tolist() == [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1]]
    along = content_of("q+k", HELD.get, axis=-1)
    assert along is not None
    assert along.shape == (2, 6)


def test_a_part_of_one() -> None:
    found = content_of("qk[1/2]", HELD.get)
    assert found is not None
    assert found.tolist() == [[6, 7, 8], [9, 10, 11]]


def test_what_is_missing_or_cannot_be_parted_is_none() -> None:
    for name in ("q+v", "v", "v[0/2]", "qk[0/3]", "qk[2/2]", "qk[0/0]", "count[0/1]", "count+count"):
        assert content_of(name, HELD.get) is None, name


def test_names() -> None:
    assert in_parts("a", "b") == {"a": "b"}
    assert in_parts("q+k", "qk") == {"q": "qk[0/2]", "k": "qk[1/2]"}
    assert (first_of("qk[1/2]"), first_of("q+k"), first_of("q")) == ("qk", "q", "q")
