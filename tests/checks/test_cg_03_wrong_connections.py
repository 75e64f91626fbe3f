"""cg.03 on whole scripts: dropped results, uncalled layers, missing nonlinearities, axes mixed up, and look-alikes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding


@pytest.mark.parametrize("path", case_files("cg.03", "faulty"), ids=case_name)
def test_fault_is_named_with_its_line(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "cg.03", path)
    assert_cause(diagnosis, "cg.03")


@pytest.mark.parametrize("path", case_files("cg.03", "healthy"), ids=case_name)
def test_look_alike_is_left_alone(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "cg.03")["conclusion"] == "no_problem"
