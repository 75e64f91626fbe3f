"""Weights that were read from a file for a model and never put into it."""

from __future__ import annotations

from typing import NamedTuple

from trueline.model import Event, Module
from trueline.store import Run
from trueline.views.parameters import ParameterHistory

FEWEST_MATRICES = 2
MOST = 0.5


class UnusedWeights(NamedTuple):
    """A file that was read, the model that it fits, and how many of its matrices have a place there."""

    read: Event
    root: Module
    fitting: int


def unused_weights(run: Run) -> UnusedWeights | None:
    """A file whose matrices fit, by name and shape, a model that is first called and trained after it was read, none of which
    is there, while nothing is loaded afterwards that could have been made of them."""
    first_calls: dict[int, int] = {}
    for call in run.root_calls:
        first_calls.setdefault(run.modules[call.module].root, call.seq)
    loads = [event.seq for event in run.events_of("load")]
    history = ParameterHistory(run)
    for read in run.events_of("weights_read"):
        matrices = read.detail.get("matrices", {})
        if len(matrices) < FEWEST_MATRICES or any(seq > read.seq for seq in loads):
            continue
        for root in run.roots:
            if root.id not in history.trained_roots or first_calls.get(root.id, 0) <= read.seq:
                continue
            own = {p.path: p for p in history.weights if p.root == root.id}
            fitting = [name for name, one in matrices.items() if name in own and list(own[name].shape) == one["shape"]]
            arrived = any(
                snapshot.digest == matrices[name]["content"] for name in fitting for snapshot in history.snapshots(own[name])
            )
            if len(fitting) >= max(FEWEST_MATRICES, MOST * len(matrices)) and not arrived:
                return UnusedWeights(read, root, len(fitting))
    return None
