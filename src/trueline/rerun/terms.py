"""What second runs may do and how long they may take: the user's word on it."""

from __future__ import annotations

import msgspec

from trueline.rerun.sandbox.start import Way
from trueline.store import Run

# What a start costs, however short the script.
STARTING = 60.0


class Terms(msgspec.Struct, frozen=True):
    """`share` of the script's own time that each second run may take, beside its start; None for what each of them is worth."""

    way: Way = Way.SANDBOX
    share: float | None = None

    def seconds(self, run: Run, usual_share: float) -> float:
        share = usual_share if self.share is None else self.share
        return STARTING + share * (run.info.seconds or STARTING)

    def words(self, run: Run, usual_share: float) -> str:
        share = usual_share if self.share is None else self.share
        return f"at most {self.seconds(run, usual_share):.0f} s: {share:.0%} of its own time and {STARTING:.0f} s to start"
