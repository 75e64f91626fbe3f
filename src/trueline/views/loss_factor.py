"""What a script multiplies its loss by before it propagates it back."""

from __future__ import annotations

from itertools import groupby

from trueline.store import Run


def loss_factor(run: Run) -> float | None:
    """How many times larger than the computed loss the propagated one is, the median over the steps that tell."""
    backwards = {step: list(events)[-1] for step, events in groupby(run.events_of("backward"), key=lambda event: event.step)}
    ratios = [
        backwards[call.step].value / call.value  # type: ignore[operator]
        for call in run.loss_calls
        if call.grad and call.value and call.step in backwards and backwards[call.step].value is not None
    ]
    return sorted(ratios)[len(ratios) // 2] if ratios else None
