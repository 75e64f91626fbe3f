"""One setting in which two scripts differ."""

from __future__ import annotations

from typing import Any

import msgspec

from trueline.model import Location


class Difference(msgspec.Struct, frozen=True):
    """`phase` is where it shows (see Divergence), `item` the item of the checklist that it belongs to. `hidden`: runs that are
    aligned do not show it, so that it stands on its own evidence."""

    subject: str
    setting: str
    mine: Any
    reference: Any
    phase: str
    item: str
    sentence: str
    fix: str
    module: str | None = None
    reference_module: str | None = None
    location: Location | None = None
    step: int = 0
    hidden: bool = False
