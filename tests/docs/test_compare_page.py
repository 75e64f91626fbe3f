"""docs/compare-files.md names every option of the commands it is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import trueline

PAGE = Path(__file__).parents[2] / "docs" / "compare-files.md"


@pytest.mark.parametrize("command", ["compare", "params", "convert"])
def test_every_option_is_on_the_page(tmp_path: Path, command: str) -> None:
    words = (
        trueline(command, "--help", cwd=tmp_path)
        .stdout.replace(",", " ")
        .replace(")", " ")
        .replace(". ", " ")
        .replace(".\n", " ")
        .split()
    )
    options = {word for word in words if word.startswith("--")} - {"--help", "--verbose"}
    assert options <= set(PAGE.read_text(encoding="utf-8").replace("`", " ").split())
