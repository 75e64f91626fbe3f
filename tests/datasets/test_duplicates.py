"""Equal rows are counted the same in memory and through files, whatever the order of the rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trueline.datasets import hashing
from trueline.datasets.columns import Texts
from trueline.datasets.duplicates import Duplicates, RowStore

pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=80)


def counted(rows: list[tuple[int, int]], in_memory: int) -> Duplicates:
    with RowStore(in_memory) as store:
        for start in range(0, len(rows), 7):
            part = np.array(rows[start : start + 7])
            store.add(hashing.of_numbers(part[:, 0]), hashing.of_numbers(part[:, 1]), start)
        return store.duplicates()


@given(pairs)
def test_against_a_plain_count(rows: list[tuple[int, int]]) -> None:
    exact = Counter(rows)
    labels: dict[int, set[int]] = {}
    for features, label in rows:
        labels.setdefault(features, set()).add(label)
    conflicts = {features for features, found in labels.items() if len(found) > 1}
    for in_memory in (1000, 10):
        found = counted(rows, in_memory)
        assert found.extra == len(rows) - len(exact)
        assert found.groups == sum(count > 1 for count in exact.values())
        assert found.conflicts == len(conflicts)
        assert found.conflicting == sum(features in conflicts for features, _ in rows)
        assert all(rows[one] == rows[other] for one, other in found.examples)
        assert all(rows[one][0] == rows[other][0] and rows[one][1] != rows[other][1] for one, other in found.conflict_examples)


@given(st.lists(st.text(max_size=90), max_size=60))
def test_texts_have_the_same_identity_exactly_when_they_are_equal(texts: list[str]) -> None:
    identity = Texts.of(texts).identity.tolist()
    assert len(set(identity)) == len(set(texts))
    # Whatever stands beside a text does not matter.
    assert [int(Texts.of([text]).identity[0]) for text in texts] == identity


@given(st.lists(st.floats() | st.integers(-(2**63), 2**63 - 1), max_size=40))
def test_numbers_have_the_same_identity_exactly_when_they_are_equal(values: list[float]) -> None:
    whole = np.array([value for value in values if isinstance(value, int)], np.int64)
    assert len(set(hashing.of_numbers(whole).tolist())) == len(set(whole.tolist()))
    floats = np.array([value for value in values if isinstance(value, float)])
    different = len({value for value in floats.tolist() if value == value}) + bool(np.isnan(floats).any())  # noqa: PLR0124
    assert len(set(hashing.of_numbers(floats).tolist())) == different
