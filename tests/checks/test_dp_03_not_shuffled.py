"""What dp.03 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, case_files, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("name", ["healthy_full_batch", "healthy_time_series", "healthy_language_model"])
def test_order_that_needs_no_shuffle_is_not_judged(diagnose_case: DiagnoseCase, name: str) -> None:
    (path,) = case_files("dp.03", name)
    assert finding(diagnose_case(path), "dp.03")["conclusion"] == "not_applicable"
