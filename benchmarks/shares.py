"""How many out of how many, with the interval that so few trials leave open."""

from __future__ import annotations

import math
from dataclasses import dataclass


def wilson(hits: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share that was `hits` out of `total` (Wilson's score interval, which holds at 0 % and 100 % too)."""
    if total == 0:
        return 0.0, 1.0
    share, weight = hits / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / total + weight / (4 * total))
    return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Share:
    hits: int
    total: int

    @property
    def value(self) -> float:
        return self.hits / self.total if self.total else math.nan

    def reaches(self, goal: float) -> bool:
        """Of nothing, every share is reached."""
        return self.total == 0 or self.value >= goal

    def text(self) -> str:
        """Such as `19/20`; a dash of nothing."""
        return f"{self.hits}/{self.total}" if self.total else "–"

    def full_text(self) -> str:
        """Such as `19/20 = 95.0 % (76.4–99.1 %)`."""
        if not self.total:
            return "–"
        low, high = wilson(self.hits, self.total)
        return f"{self.hits}/{self.total} = {self.value:.1%} ({low:.1%}–{high:.1%})".replace("%", " %")
