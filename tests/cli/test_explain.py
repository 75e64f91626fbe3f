"""`trueline explain` prints the pages of the checklist."""

from __future__ import annotations

from pathlib import Path

from builders import trueline

from trueline.checks import registry
from trueline.checks.base import PAGE_HEADINGS
from trueline.cli.explain import sections


def test_list_of_items(tmp_path: Path) -> None:
    listed = trueline("explain", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(registry())


def test_page_of_an_item(tmp_path: Path) -> None:
    check_id, check = next(iter(registry().items()))
    page = trueline("explain", check_id.upper(), cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    lines = page.stdout.splitlines()
    assert lines[0] == f"{check_id} {check.title}"
    assert [line for line in lines if line in PAGE_HEADINGS] == list(PAGE_HEADINGS)


def test_every_page_has_its_sections() -> None:
    for check in registry().values():
        found = dict(sections(check.page.partition("\n")[2]))
        assert [heading for heading in found if heading] == list(PAGE_HEADINGS), check.id
        assert all(text.strip() for heading, text in found.items() if heading), check.id


def test_headings_may_be_decorated() -> None:
    page = "Intro\n\n## What it checks\nA\n\nMethod\n------\nB\n\n    Evidence\n"
    assert sections(page) == [("", "Intro"), ("What it checks", "A"), ("Method", "B\n\n    Evidence")]


def test_unknown_item(tmp_path: Path) -> None:
    asked = trueline("explain", "zz.99", cwd=tmp_path)
    assert asked.returncode == 2
    assert "zz.99" in asked.stderr
    assert "cg.04" in asked.stderr
    assert "Traceback" not in asked.stderr
