"""What the comparison of two runs concludes: the part of the machine-readable contract that a reference adds."""

from __future__ import annotations

from typing import Any

import msgspec

from trueline.model.location import Location


class Divergence(msgspec.Struct, frozen=True):
    """Where two runs first part. `phase`: `init`, `data`, `forward`, `loss`, `backward`, `update`. `cause` is one sentence on the
    setting that explains it, None where none was found. `item` is the item of the checklist that it belongs to."""

    step: int
    phase: str
    module: str | None
    reference_module: str | None
    location: Location | None
    cause: str | None
    item: str
    fix: str = ""
    evidence: list[str] = []


class Comparison(msgspec.Struct, frozen=True):
    """Mine beside the reference. `verdict` says in the guide's words what the losses show. `differences` are all settings that
    differ, whether or not they were seen to matter; `pairs` the layers that were taken for the same."""

    first_step_loss_differs: bool | None
    second_step_loss_differs: bool | None
    bifurcation_step: int | None
    first_divergence: Divergence | None
    verdict: str
    unmatched: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    losses: list[tuple[int, float | None, float | None]] = []
    limits: str = ""
