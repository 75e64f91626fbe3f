"""What ds.03 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from case_runner import Diagnosis, case_files, finding

DiagnoseCase = Callable[[Path], Diagnosis]


def test_counts_are_in_the_evidence_and_a_sampler_is_seen(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("ds.03", "healthy_weighted_sampler")
    evidence = finding(diagnose_case(path), "ds.03")["evidence"][0]
    assert sum(evidence["values"]["counts"].values()) == 1200
    assert "weighted sampler" in evidence["text"]
    assert min(evidence["values"]["different_samples"].values()) < 100


def test_words_are_rare_by_nature(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("ds.03", "healthy_word_model")
    assert finding(diagnose_case(path), "ds.03")["conclusion"] == "not_applicable"
