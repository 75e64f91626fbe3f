"""Every check on whole scripts: faults are found on their line and named as the cause, look-alikes are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

from trueline.checks import registry

# What an item may say of scripts that look like its fault, where it must not pass them by.
_SEEN = {"no_problem"}
LOOK_ALIKES: dict[str, set[str]] = {
    **dict.fromkeys(("api.01", "cg.01", "cg.02", "cg.03", "cg.04", "mp.01", "tr.02", "tr.03", "wi.01", "wi.02"), _SEEN),
    # Without a scale there is none to be wrong.
    **dict.fromkeys(("mp.02", "mp.04"), _SEEN | {"not_applicable"}),
    "tr.08": _SEEN | {"not_checked"},
}  # fmt: skip
_NO_PROBLEM = {"no_problem", "not_applicable", "not_checked"}


def _cases(prefix: str) -> list[object]:
    return [
        pytest.param(check, path, id=f"{check}-{case_name(path)}", marks=_marks(path))
        for check in registry()
        for path in case_files(check, prefix)
    ]


def _marks(path: Path) -> list[pytest.MarkDecorator]:
    """Cases of a check that is not written yet: `make new-check`."""
    waits = path.read_text(encoding="utf-8").startswith('"""To be made faulty')
    return [pytest.mark.xfail(reason="the case is not written yet")] if waits else []


@pytest.mark.parametrize(("check", "path"), _cases("faulty"))
def test_fault_is_named_with_its_line(check: str, path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, check, path)
    assert_cause(diagnosis, check)


@pytest.mark.parametrize(("check", "path"), _cases("healthy"))
def test_look_alike_is_left_alone(check: str, path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, check)["conclusion"] in LOOK_ALIKES.get(check, _NO_PROBLEM)
