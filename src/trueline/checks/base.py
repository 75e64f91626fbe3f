"""What a check is: one file or folder per checklist item, found by its name, documented by its docstring.

A check file is named after its id and its fault (`dp_03_not_shuffled.py`), as is the folder of a check of several
files, which nothing outside of it imports from. It holds:

- a module docstring: the item's documentation page, with the headings of PAGE_HEADINGS in this order, after a first line
  that is the title;
- `conclude(run) -> Finding`, which reads a recorded run and never imports a framework;
- optionally `CONSEQUENCES`, the ids of items that fire as a consequence when this one is the cause, and `RANK`, how close
  to the root of things the fault is (lower comes first among otherwise equal findings; 50 unless given);
- optionally `NEEDS`, what must have been seen for the item to pass, and `GAINS`, what makes it tell more (see Run.unseen).

Use `Item` to make findings: it knows the id and the title. An item of several parts is concluded by
`worst_of` (parts.py).
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from functools import cache
from types import ModuleType

import msgspec

from trueline.errors import TruelineError
from trueline.model import Conclusion, Evidence, Finding, Location
from trueline.store import Run

PAGE_HEADINGS = ("What it checks", "Why it hurts accuracy", "Method", "Evidence", "Limits", "What to do")
FAMILIES = ("ds", "dp", "hp", "api", "cg", "wi", "mp", "tr")
"""In the order of the checklist."""
_FILE_NAME = re.compile(r"^([a-z]+)_(\d\d)_[a-z0-9_]+$")


class Check(msgspec.Struct, frozen=True):
    """A checklist item as the registry knows it."""

    id: str
    title: str
    page: str
    conclude: Callable[[Run], Finding]
    consequences: tuple[str, ...]
    rank: int
    needs: frozenset[str] = frozenset()
    gains: frozenset[str] = frozenset()


class Item:
    """Makes the findings of one checklist item: `item = Item(__name__, __doc__)`."""

    def __init__(self, module_name: str, page: str | None) -> None:
        match = _FILE_NAME.match(module_name.rpartition(".")[2])
        if match is None or not page:
            raise ValueError(f"{module_name} is not a check file: Expected a name such as dp_03_not_shuffled and a docstring.")
        self.id = f"{match[1]}.{match[2]}"
        self.title = page.strip().splitlines()[0].strip().rstrip(".")

    def problem(
        self,
        summary: str,
        *,
        confidence: float,
        evidence: list[Evidence],
        fix: str,
        location: Location | None = None,
        limits: str = "",
    ) -> Finding:
        return Finding(self.id, self.title, Conclusion.PROBLEM_FOUND, summary, confidence, None, evidence, location, fix, limits)

    def no_problem(
        self, summary: str, *, limits: str, confidence: float = 0.9, evidence: list[Evidence] | None = None
    ) -> Finding:
        return Finding(self.id, self.title, Conclusion.NO_PROBLEM, summary, confidence, evidence=evidence or [], limits=limits)

    def not_applicable(self, why: str, *, evidence: list[Evidence] | None = None) -> Finding:
        return Finding(self.id, self.title, Conclusion.NOT_APPLICABLE, why, 1.0, evidence=evidence or [])

    def not_checked(self, missing: str) -> Finding:
        return Finding(self.id, self.title, Conclusion.NOT_CHECKED, f"Not checked: {missing}", limits=missing)


@cache
def registry() -> dict[str, Check]:
    """All checks by id, in the order of the checklist."""
    package = importlib.import_module("trueline.checks")
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        if _FILE_NAME.match(info.name):
            check = _check_of(importlib.import_module(f"trueline.checks.{info.name}"))
            found[check.id] = check
    return dict(sorted(found.items(), key=lambda item: (FAMILIES.index(item[0].split(".")[0]), item[0])))


def check_of_id(check_id: str) -> Check:
    checks = registry()
    if check_id not in checks:
        raise TruelineError(f"There is no check {check_id!r}. Expected one of: {', '.join(checks)}.")
    return checks[check_id]


def _check_of(module: ModuleType) -> Check:
    item = Item(module.__name__, module.__doc__)
    return Check(
        item.id,
        item.title,
        (module.__doc__ or "").strip(),
        module.conclude,
        tuple(getattr(module, "CONSEQUENCES", ())),
        getattr(module, "RANK", 50),
        frozenset(getattr(module, "NEEDS", ())),
        frozenset(getattr(module, "GAINS", ())),
    )
