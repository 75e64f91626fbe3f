"""Objects as keys: by identity, and forgotten when they die."""

from __future__ import annotations

import gc

from trueline.recorder.identity import ByIdentity


class Equal:
    """Equal to everything, and without a hash, as tensors and configurations are."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


def test_equal_objects_are_told_apart() -> None:
    known = ByIdentity()
    one, other = Equal(), Equal()
    known[one] = 1
    assert one in known
    assert other not in known
    assert (known.get(other), known.get(other, "none")) == (None, "none")
    known[other] = 2
    known[one] = 3
    assert (known[one], known[other], len(known)) == (3, 2, 2)
    assert [value for _, value in known.items()] == known.values() == [3, 2]


def test_the_dead_are_forgotten_and_their_successors_are_strangers() -> None:
    known = ByIdentity()
    for number in range(1000):
        short_lived = Equal()
        assert short_lived not in known
        known[short_lived] = number
        known[short_lived] = number + 1
        del short_lived
    gc.collect()
    assert len(known) == 0
