"""Which steps are looked at in full, so that recording stays within its budget.

The first steps always are, and then the steps that are powers of two and those after them, so that even a run whose every
step is tiny is seen over its whole length at a vanishing cost. All other samples are paid for: each step earns the budget's
share of its time, minus what the recorder spent on it anyway, and a step is sampled when the savings cover what a sampled
step costs.
"""

from __future__ import annotations

FULL_STEPS = 3
TRACED_STEPS = 2
# The rest of the budget is for what the recorder cannot see of its own cost: its wrappers around calls and the caches it cools.
_OWN_SHARE = 0.6


class Sampling:
    """Decides, before each step, whether its tensors are measured."""

    def __init__(self, budget: float) -> None:
        self.budget = budget * _OWN_SHARE
        self._savings = 0.0
        self._cost: float | None = None

    def samples(self, step: int) -> bool:
        if step < FULL_STEPS or _is_paired(step):
            return True
        return self._cost is not None and self._savings >= self._cost

    def with_sketches(self, step: int) -> bool:
        """Sketches cost time and space: they are kept where two runs will be compared, at their beginning."""
        return step < FULL_STEPS

    def with_gradient_sketches(self, step: int) -> bool:
        """Gradients of consecutive steps tell how much of them is noise, all along the run."""
        return step < FULL_STEPS or _is_paired(step)

    def step_ended(self, step: int, *, seconds: float, spent: float, sampled: bool) -> None:
        """Account for a step: its wall time, the part of it that was the recorder's, and whether it was sampled."""
        if step < FULL_STEPS:
            if step == FULL_STEPS - 1:
                self._cost = spent
            return
        own = max(seconds - spent, 0.0)
        if sampled:
            self._cost = spent if self._cost is None else 0.5 * (self._cost + spent)
        self._savings = max(self._savings + self.budget * own - spent, -10 * (self._cost or 0.0))


def _is_paired(step: int) -> bool:
    """Powers of two and the steps after them."""
    return _is_power_of_two(step) or _is_power_of_two(step - 1)


def _is_power_of_two(step: int) -> bool:
    return step > 0 and step & (step - 1) == 0
