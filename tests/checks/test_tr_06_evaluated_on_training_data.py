"""What tr.06 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from case_runner import Diagnosis, case_files, finding

DiagnoseCase = Callable[[Path], Diagnosis]


def test_shared_samples_are_counted(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("tr.06", "faulty_slices_overlap")
    values = finding(diagnose_case(path), "tr.06")["evidence"][0]["values"]
    assert (values["shared"], values["samples"]) == (100, 397)


def test_split_after_copies_is_told(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("tr.06", "faulty_oversampled_before_split")
    assert "oversample the training part only" in finding(diagnose_case(path), "tr.06")["fix"]
