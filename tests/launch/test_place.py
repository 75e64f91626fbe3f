"""Which process of a launch this one is, from the environment variables that torchrun and msrun set."""

from __future__ import annotations

import pytest

from trueline.launch.place import Place, is_scheduler, place_of_this_process

_NAMES = ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM", "RANK_ID")
# RANK_ID is 0 for the scheduler too, and for all workers of one node where ranks are numbered later.
_MSRUN = {"MS_WORKER_NUM": "4", "RANK_ID": "0"}


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({}, None),
        ({"RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}, Place(1, 2, "none")),
        (_MSRUN | {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "3"}, Place(3, 4, "ranks")),
        (_MSRUN | {"MS_ROLE": "MS_SCHED"}, None),
        (_MSRUN | {"MS_ROLE": "MS_SCHED", "MS_NODE_ID": "0"}, None),
        (_MSRUN | {"MS_ROLE": "MS_WORKER"}, None),
    ],
)
def test_place(told: dict[str, str], place: Place | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert place_of_this_process() == place
    assert is_scheduler() is (told.get("MS_ROLE") == "MS_SCHED")
