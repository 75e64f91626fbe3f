"""docs/limits.md says what src/trueline/limits.py sets, and every limit has its reason and its user."""

from __future__ import annotations

from docs.make_limits import PAGE, limits_in_order, page
from tests.architecture.sources import source_files
from trueline import limits

UNITS = {"KIB", "MIB", "GIB"}


def test_the_page_says_what_is_set() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: .venv/bin/python docs/make_limits.py"


def test_every_limit_is_on_the_page_with_its_reason() -> None:
    listed = {name: why for name, _, why in limits_in_order() if name}
    assert set(listed) == {name for name in vars(limits) if name.isupper()} - UNITS
    assert all(listed.values())


def test_every_limit_is_used() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in source_files() if path.name != "limits.py")
    unused = [name for name, _, _ in limits_in_order() if name and f"limits.{name}" not in sources]
    assert not unused
