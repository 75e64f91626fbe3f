"""Random numbers that aligned runs draw alike.

Scripts that do the same draw their noise and the order of their samples from other generators, or from one generator that
something else has drawn from before. In aligned runs they get the same numbers, whichever generator they ask: those of the step
that they train, by their sort and how many they are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Sort = Literal["normal", "uniform", "integers", "permutation"]
_SORTS: tuple[Sort, ...] = ("normal", "uniform", "integers", "permutation")


def own_generator(*seeds: int) -> np.random.Generator:
    """One that is not the script's: those of `np.random.default_rng` are watched."""
    return np.random.Generator(np.random.PCG64(seeds))


class Noise:
    """What is drawn for training, from `begin` on; data and initial weights that are drawn before stay as they are.

    `state` tells how far a generator is: what is drawn again from the same state is the same again, as it is where a script
    turns its generator back.
    """

    def __init__(self) -> None:
        self.begun = False
        self._step = 0
        self._counts: Counter[tuple[Sort, int]] = Counter()
        self._drawn: dict[tuple[Sort, int, int], int] = {}

    def begin(self) -> None:
        """The script has built an optimizer, or fetched a batch to train with."""
        self.begun = True

    def normal(self, step: int, shape: tuple[int, ...], state: int | None = None) -> NDArray[Any] | None:
        """Standard normal numbers; None where those of the script stay."""
        generator = self._generator(step, "normal", int(np.prod(shape)), state)
        return None if generator is None else generator.standard_normal(shape)

    def uniform(self, step: int, shape: tuple[int, ...], state: int | None = None) -> NDArray[Any] | None:
        """Numbers from 0 to 1."""
        generator = self._generator(step, "uniform", int(np.prod(shape)), state)
        return None if generator is None else generator.random(shape)

    def integers(self, step: int, low: int, high: int, shape: tuple[int, ...], state: int | None = None) -> NDArray[Any] | None:
        """Whole numbers from `low` to below `high`."""
        generator = self._generator(step, "integers", int(np.prod(shape)), state)
        return None if generator is None or high <= low else generator.integers(low, high, shape)

    def permutation(self, step: int, count: int, state: int | None = None) -> NDArray[Any] | None:
        """The numbers below `count` in random order."""
        generator = self._generator(step, "permutation", count, state)
        return None if generator is None else generator.permutation(count)

    def _generator(self, step: int, sort: Sort, size: int, state: int | None) -> np.random.Generator | None:
        if not self.begun:
            return None
        if step != self._step:
            self._step = step
            self._counts.clear()
            self._drawn.clear()
        number = None if state is None else self._drawn.get((sort, size, state))
        if number is None:
            number = self._counts[sort, size]
            self._counts[sort, size] += 1
            if state is not None:
                self._drawn[sort, size, state] = number
        return own_generator(step, _SORTS.index(sort), size, number)
