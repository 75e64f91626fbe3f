"""The transcript in docs/data.md is what the command prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from builders import trueline

ROOT = Path(__file__).parents[2]


def test_the_transcript(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "docs" / "make_data_example.py"), "wine.csv"], cwd=tmp_path, check=True)
    shown = trueline("data", "wine.csv", cwd=tmp_path, COLUMNS="100").stdout
    printed = "\n".join(line.rstrip() for line in shown.splitlines())
    assert printed in (ROOT / "docs" / "data.md").read_text(encoding="utf-8")


def test_every_option_is_on_the_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    words = trueline("data", "--help", cwd=tmp_path).stdout.replace(",", " ").split()
    assert {word for word in words if word.startswith("--")} - {"--help", "--verbose"} <= set(page.replace("`", " ").split())
