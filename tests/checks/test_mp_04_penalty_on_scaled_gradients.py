"""What mp.04 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from case_runner import Diagnosis, case_files, finding

DiagnoseCase = Callable[[Path], Diagnosis]


def test_evidence_tells_the_scale_and_the_measure(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("mp.04", "faulty_wgan_scaler")
    derivative, measure, backward = finding(diagnose_case(path), "mp.04")["evidence"]
    assert derivative["values"]["scale"] == 4096.0
    assert measure["values"]["operation"] == "norm"
    assert "propagated back" in backward["text"]
