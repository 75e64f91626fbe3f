"""Which of the processes of a distributed launch this one is, from what launchers tell the processes that they start."""

from __future__ import annotations

import os

import msgspec

# Set for a script that runs a second time.
RERUN_VARIABLE = "TRUELINE_RERUN"


class Place(msgspec.Struct, frozen=True):
    """One rank of a launch. `launch` is what its launcher calls itself, the same for all ranks."""

    rank: int
    ranks: int
    launch: str


def place_of_this_process() -> Place | None:
    """What torchrun says (RANK), or msrun (MS_NODE_ID); None for a process that is no rank.

    RANK_ID of msrun is no help: it stays that of the scheduler where ranks are numbered later.
    """
    told = os.environ
    if "RANK" in told:
        return Place(int(told["RANK"]), int(told.get("WORLD_SIZE", "1")), told.get("TORCHELASTIC_RUN_ID", "ranks"))
    if told.get("MS_NODE_ID", "").isdigit() and told.get("MS_WORKER_NUM", "").isdigit() and not is_scheduler():
        return Place(int(told["MS_NODE_ID"]), int(told["MS_WORKER_NUM"]), "ranks")
    return None


def is_scheduler() -> bool:
    """Whether this is the process that msrun starts with the training script to bring its ranks together. It never trains."""
    return os.environ.get("MS_ROLE") == "MS_SCHED"


def is_rerun() -> bool:
    """Whether the script runs a second time: what it writes is thrown away, so nothing of that is kept."""
    return RERUN_VARIABLE in os.environ
