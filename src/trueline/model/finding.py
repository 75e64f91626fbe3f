"""What a check concludes, and the diagnosis made of it: the machine-readable contract."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from trueline.model.comparison import Comparison
from trueline.model.location import Location
from trueline.model.run import FailedWatch


class Conclusion(StrEnum):
    """The guide's three conclusions, and two for when nothing could be concluded."""

    PROBLEM_FOUND = "problem_found"
    NO_PROBLEM = "no_problem"
    NOT_APPLICABLE = "not_applicable"
    NOT_CHECKED = "not_checked"
    ERROR = "error"


class Evidence(msgspec.Struct, frozen=True):
    """One observation that supports a conclusion: a sentence, the numbers behind it, and the line where it was made."""

    text: str
    values: dict[str, Any] = {}
    step: int | None = None
    location: Location | None = None


class Finding(msgspec.Struct, frozen=True):
    """The conclusion of one checklist item on one run.

    `confirmed` is None until a rerun with the cause removed was tried. `limits` states the smallest fault that this
    check would have seen in this run, or, when nothing was checked, what was missing.
    """

    id: str
    title: str
    conclusion: Conclusion
    summary: str
    confidence: float = 0.0
    confirmed: bool | None = None
    evidence: list[Evidence] = []
    location: Location | None = None
    fix: str = ""
    limits: str = ""
    consequence_of: str | None = None


class Verdict(msgspec.Struct, frozen=True):
    """`incomplete`: why the record does not hold the whole training; None where it does."""

    status: str
    cause: str | None
    headline: str
    incomplete: str | None = None


class NonFinite(msgspec.Struct, frozen=True):
    """The first NaN or infinite value of the run."""

    step: int
    phase: str
    module: str | None
    operation: str | None
    location: Location | None


class Diagnosis(msgspec.Struct, frozen=True):
    """The JSON contract: everything that `trueline diagnose` and `trueline check` have to say of a run. `unseen`: what could not
    be watched of it, see Run.unseen."""

    run: str
    verdict: Verdict
    checklist: list[Finding]
    schema: str = "trueline.diagnosis/1"
    reference: str | None = None
    comparison: Comparison | None = None
    nonfinite: NonFinite | None = None
    failed_watches: list[FailedWatch] = []
    unseen: list[str] = []
