"""Write docs/checks/<id>.md from the docstrings of the checks, and their index.

Run it after a check was added or its docstring changed: `.venv/bin/python docs/make_pages.py`. A test compares the pages
with the docstrings, so they cannot drift apart.
"""

from __future__ import annotations

from pathlib import Path

from trueline.checks import Check, registry
from trueline.checks.base import PAGE_HEADINGS

FOLDER = Path(__file__).parent / "checks"


def page_of(check: Check) -> str:
    """The Markdown page of a check: its docstring with the title and the headings marked as such."""
    _, *body = check.page.splitlines()
    lines = [f"# {check.id} {check.title}"]
    for number, line in enumerate(body):
        heading = heading_of(line)
        underlined = number > 0 and heading_of(body[number - 1]) is not None and set(line.strip()) <= {"-", "="} and line.strip()
        if heading is not None:
            lines.append(f"## {heading}")
        elif not underlined:
            lines.append(line.rstrip())
    return "\n".join(lines).rstrip() + "\n"


def heading_of(line: str) -> str | None:
    """The heading that a line of a docstring is, whatever it is marked with."""
    bare = line.strip().lstrip("#").strip().rstrip(":")
    return bare if bare in PAGE_HEADINGS else None


def headings_of(page: str) -> list[str]:
    return [heading for heading in map(heading_of, page.splitlines()) if heading is not None]


def index_of(checks: list[Check]) -> str:
    rows = [f"| [{check.id}]({check.id}.md) | {check.title} |" for check in checks]
    head = ["# The checks", "", "Made by `docs/make_pages.py` from the docstrings under `src/trueline/checks/`.", ""]
    return "\n".join([*head, "| id | fault |", "|---|---|", *rows]) + "\n"


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


if __name__ == "__main__":
    write_pages()
