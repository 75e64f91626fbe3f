"""Write docs/checks/<id>.md from the docstrings of the checks, their index, and the table in the README.

Run it after a check was added or its docstring changed: `.venv/bin/python docs/make_pages.py`. A test compares the pages
with the docstrings, so they cannot drift apart.
"""

from __future__ import annotations

import re
from pathlib import Path

from trueline.checks import Check, registry

FOLDER = Path(__file__).parent / "checks"
README = Path(__file__).parents[1] / "README.md"
_TABLE = re.compile(r"(?<=<!-- checks -->\n\n).*?(?=\n<!-- end of checks -->)", re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def page_of(check: Check) -> str:
    """The Markdown page of a check: its docstring under a title with its id."""
    body = check.page.partition("\n")[2].strip()
    return f"# {check.id} {check.title}\n\n" + _HEADING.sub(r"## \1\n", body) + "\n"


def headings_of(page: str) -> list[str]:
    return _HEADING.findall(page)


def index_of(checks: list[Check]) -> str:
    rows = [f"| [{check.id}]({check.id}.md) | {check.title} |" for check in checks]
    head = ["# The checks", "", "Made by `docs/make_pages.py` from the docstrings under `src/trueline/checks/`.", ""]
    return "\n".join([*head, "| id | fault |", "|---|---|", *rows]) + "\n"


def readme_of(checks: list[Check]) -> str:
    """The README with its table of checks as it should be."""
    rows = [f"| [{check.id}](docs/checks/{check.id}.md) | {check.title} |\n" for check in checks]
    table = "| id | fault |\n|---|---|\n" + "".join(rows)
    return _TABLE.sub(lambda _: table, README.read_text(encoding="utf-8"))


def pages() -> dict[Path, str]:
    """All pages by their path, as they should be."""
    checks = list(registry().values())
    return {FOLDER / f"{check.id}.md": page_of(check) for check in checks} | {FOLDER / "README.md": index_of(checks)}


def write_pages() -> None:
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for stale in set(FOLDER.glob("*.md")) - set(wanted):
        stale.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(FOLDER.parent.parent))
    README.write_text(readme_of(list(registry().values())), encoding="utf-8")


if __name__ == "__main__":
    write_pages()
