"""Files stay small enough to be read in one go."""

from __future__ import annotations

from statistics import median

from tests.architecture.sources import source_files


def lines_of_sources() -> dict[str, int]:
    counts = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    return {path: count for path, count in counts.items() if count}


def test_the_median_source_file_has_under_150_lines() -> None:
    assert median(lines_of_sources().values()) < 150


def test_no_source_file_passes_400_lines() -> None:
    too_long = {path: count for path, count in lines_of_sources().items() if count > 400}
    assert not too_long, "a file of more than 400 lines is asking to be two"
