"""What mp.01 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, case_files, case_name, finding


@pytest.mark.parametrize("path", case_files("mp.01", "faulty"), ids=case_name)
def test_the_first_value_is_where_the_finding_is(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert diagnosis["nonfinite"]["location"] == finding(diagnosis, "mp.01")["location"]
