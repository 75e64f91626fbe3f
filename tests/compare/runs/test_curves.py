"""When losses of aligned runs have parted, and how."""

from __future__ import annotations

import pytest

from trueline.compare.runs.curves import _is_sudden

STEPS = 60


@pytest.mark.parametrize(
    ("apart", "sudden"),
    [
        # As rounding grows, slowly and over the edge of noise.
        ([1e-7 * 1.2**step for step in range(STEPS)], False),
        ([1e-7] * 20 + [3e-5 * 1.1**step for step in range(STEPS - 20)], False),
        # As another loss does that is added from a step on.
        ([1e-7] * 30 + [0.02] * (STEPS - 30), True),
        ([1e-7] * 30 + [float("nan")] * (STEPS - 30), True),
    ],
)
def test_sudden(apart: list[float], sudden: bool) -> None:
    losses = [(step, 1.0 + value, 1.0) for step, value in enumerate(apart)]
    parted = 30 if apart[30] > 1e-3 or apart[30] != apart[30] else next(n for n, value in enumerate(apart) if value > 1e-5)
    assert _is_sudden(losses, parted) is sudden
