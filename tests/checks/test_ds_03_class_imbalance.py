"""ds.03 on its cases: every fault is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("ds.03", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "ds.03", path)
    assert_cause(diagnosis, "ds.03")


@pytest.mark.parametrize("path", case_files("ds.03", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "ds.03")["conclusion"] in ("no_problem", "not_applicable", "not_checked")


def test_counts_are_in_the_evidence_and_a_sampler_is_seen(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("ds.03", "healthy_weighted_sampler")
    evidence = finding(diagnose_case(path), "ds.03")["evidence"][0]
    assert sum(evidence["values"]["counts"].values()) == 1200
    assert "weighted sampler" in evidence["text"]
    assert min(evidence["values"]["different_samples"].values()) < 100


def test_words_are_rare_by_nature(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("ds.03", "healthy_word_model")
    assert finding(diagnose_case(path), "ds.03")["conclusion"] == "not_applicable"
