"""What ds.02 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from case_runner import Diagnosis, case_files, finding

DiagnoseCase = Callable[[Path], Diagnosis]


def test_suspicious_samples_are_listed_with_their_place(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("ds.02", "faulty_digits_annotations")
    values = [evidence["values"] for evidence in finding(diagnose_case(path), "ds.02")["evidence"]]
    (listed,) = [value["suspicious"] for value in values if "suspicious" in value]
    assert all(sample["label"] != sample["predicted"] for sample in listed)
    assert {"fingerprint", "epoch", "batch", "row", "margin"} <= set(listed[0])
