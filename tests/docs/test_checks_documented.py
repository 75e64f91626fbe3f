"""A check without its page or its cases is not finished."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.make_pages import FOLDER, headings_of, pages
from trueline.checks import check_of_id, registry
from trueline.checks.base import PAGE_HEADINGS

CASES = Path(__file__).parents[2] / "benchmarks" / "faults" / "cases"
CHECK_IDS = list(registry())


def test_there_are_checks() -> None:
    assert CHECK_IDS


@pytest.mark.parametrize("check_id", CHECK_IDS)
def test_the_docstring_has_the_six_headings_in_order(check_id: str) -> None:
    assert headings_of(check_of_id(check_id).page) == list(PAGE_HEADINGS)


@pytest.mark.parametrize("check_id", CHECK_IDS)
def test_no_heading_is_left_empty(check_id: str) -> None:
    _, *sections = re.split(r"^## .+$", check_of_id(check_id).page, flags=re.MULTILINE)
    assert all(section.strip() for section in sections)


@pytest.mark.parametrize("check_id", CHECK_IDS)
def test_it_has_three_faulty_and_two_healthy_cases(check_id: str) -> None:
    folder = CASES / check_id.replace(".", "_")
    assert len(list(folder.glob("faulty*.py"))) >= 3
    assert len(list(folder.glob("healthy*.py"))) >= 2


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_the_page_says_what_the_docstring_says(path: Path) -> None:
    assert path.is_file(), "run: .venv/bin/python docs/make_pages.py"
    assert path.read_text(encoding="utf-8") == pages()[path], "run: .venv/bin/python docs/make_pages.py"


def test_no_page_is_left_of_a_check_that_is_gone() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == {path.name for path in pages()}


@pytest.mark.parametrize("check_id", CHECK_IDS)
def test_the_readme_names_it(check_id: str) -> None:
    readme = (FOLDER.parent.parent / "README.md").read_text(encoding="utf-8")
    assert f"| [{check_id}](docs/checks/{check_id}.md) | {check_of_id(check_id).title} |" in readme
