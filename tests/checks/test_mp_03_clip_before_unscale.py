"""What mp.03 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, case_files, finding

DiagnoseCase = Callable[[Path], Diagnosis]


def test_evidence_tells_the_true_norm(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("mp.03", "faulty_scaler_loop")
    values = finding(diagnose_case(path), "mp.03")["evidence"][0]["values"]
    assert values["scale"] == 1024.0
    assert values["limit"] == 1.0
    assert values["true_norm"] == pytest.approx(values["norm"] / 1024.0)
