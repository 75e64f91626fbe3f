"""mp.04 on its cases: every fault is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("mp.04", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "mp.04", path)
    assert_cause(diagnosis, "mp.04")


@pytest.mark.parametrize("path", case_files("mp.04", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    # All of them are traced: that nothing is wrong is told, not merely not seen.
    assert finding(diagnosis, "mp.04")["conclusion"] in ("no_problem", "not_applicable")


def test_evidence_tells_the_scale_and_the_measure(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("mp.04", "faulty_wgan_scaler")
    derivative, measure, backward = finding(diagnose_case(path), "mp.04")["evidence"]
    assert derivative["values"]["scale"] == 4096.0
    assert measure["values"]["operation"] == "norm"
    assert "propagated back" in backward["text"]
