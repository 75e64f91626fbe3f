"""The fixture that every test of a check uses; what it runs and the assertions on it are in case_runner.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, diagnose


@pytest.fixture(scope="session")
def diagnose_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Diagnosis]:
    """`diagnose_case(path)`: what `trueline check` says of a recording of that script, made once per session."""
    known: dict[Path, Diagnosis] = {}

    def of_case(path: Path) -> Diagnosis:
        path = path.resolve()
        if path not in known:
            known[path] = diagnose(path, tmp_path_factory.mktemp(path.stem))
        return known[path]

    return of_case
