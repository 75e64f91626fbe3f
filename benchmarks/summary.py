"""From step times to ratios: what a condition costs against the plain blocks of the same rounds."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

WHOLE_RUN = 300
CONTROL = "plain again"


@dataclass(frozen=True)
class Cost:
    """Ratios of a condition's step time to the plain one's."""

    workload: str
    condition: str
    limit: float | None
    plain_ms: float
    """Median step time of the plain blocks."""
    median: float
    """Median over the pairs of blocks, the first pair left out."""
    low: float
    high: float
    """Quartiles of the same."""
    mean: float
    """Total time over total time of the same blocks: the steps that are sampled in full weigh in it as they are."""
    cpu: float
    """As `mean`, in CPU time, which other processes on the machine disturb less."""
    whole: float
    """As `mean` over the first steps (up to 300) from the very first one on, start-up of the sampling included."""
    whole_steps: int
    first_ms: float
    """Median time of the first three steps, which are always sampled in full."""
    start_up: float
    """Seconds that importing and opening took before the script was loaded."""
    steps: int
    bytes_per_step: float

    noise: float
    """How far the second plain instance was from 1, in median or mean: the error of the method."""

    @property
    def result(self) -> str:
        if self.limit is None:
            return ""
        if self.noise > self.limit - 1:
            return "unclear"
        return "pass" if max(self.median, self.mean) <= self.limit else "FAIL"


def cost(times: dict[str, Any], condition: str, limit: float | None) -> Cost:
    measured = times["conditions"][condition]
    blocks: dict[str, Any] = measured["blocks"]
    plain: dict[str, Any] = times["conditions"]["plain"]["blocks"]
    # The first pair counts in the whole run only. With a single pair there is nothing to leave out.
    steady = list(blocks)[1:] or list(blocks)
    ratios = [sum(blocks[number]["seconds"]) / sum(plain[number]["seconds"]) for number in steady]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else (ratios[0],) * 3
    steps = _steps(blocks, list(blocks))
    plain_steps = _steps(plain, list(blocks))
    whole = min(WHOLE_RUN, len(steps))
    control = None
    if limit is not None and CONTROL in times["conditions"]:
        control = cost(times, CONTROL, None)
    return Cost(
        workload=times["workload"],
        condition=condition,
        limit=limit,
        plain_ms=1000 * statistics.median(plain_steps),
        median=statistics.median(ratios),
        low=low,
        high=high,
        mean=sum(_steps(blocks, steady)) / sum(_steps(plain, steady)),
        cpu=sum(blocks[number]["cpu"] for number in steady) / sum(plain[number]["cpu"] for number in steady),
        whole=sum(steps[:whole]) / sum(plain_steps[:whole]),
        whole_steps=whole,
        first_ms=1000 * statistics.median(steps[:3]),
        start_up=measured["start_up"],
        steps=len(steps),
        bytes_per_step=measured["bytes"] / len(steps),
        noise=max(abs(control.median - 1), abs(control.mean - 1)) if control else 0.0,
    )


def _steps(blocks: dict[str, Any], numbers: list[str]) -> list[float]:
    return [second for number in numbers for second in blocks[number]["seconds"]]


HEADINGS = (
    "workload",
    "plain ms",
    "measured",
    "limit",
    "median",
    "quartiles",
    "mean",
    "cpu",
    "whole run",
    "first ms",
    "bytes/step",
    "result",
)


def cells(row: Cost) -> tuple[str, ...]:
    return (
        row.workload,
        f"{row.plain_ms:.2f}",
        row.condition,
        f"{row.limit:.2f}×" if row.limit is not None else "–",
        f"{row.median:.3f}×",
        f"{row.low:.3f}–{row.high:.3f}",
        f"{row.mean:.3f}×",
        f"{row.cpu:.3f}×",
        f"{row.whole:.3f}×",
        f"{row.first_ms:.2f}",
        f"{row.bytes_per_step:,.0f}" if row.bytes_per_step else "–",
        row.result,
    )


def table(rows: list[Cost]) -> str:
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    left = {0, 2, len(HEADINGS) - 1}

    def aligned(line: tuple[str, ...]) -> str:
        return "  ".join(
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()

    return "\n".join([aligned(HEADINGS), "  ".join("-" * width for width in widths), *(aligned(line) for line in lines[1:])])
