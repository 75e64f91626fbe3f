"""`trueline explain`: the documentation page of a checklist item."""

from __future__ import annotations

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from trueline.checks import check_of_id, registry
from trueline.checks.base import PAGE_HEADINGS
from trueline.report.console import output_console


@click.command("explain")
@click.argument("check_id", metavar="ID", required=False)
def command(check_id: str | None) -> None:
    """Print what a checklist item checks, why it matters, how it is found and what to do. Without ID: list the items."""
    console = output_console(own_pages=True)
    if check_id is None:
        for check in registry().values():
            console.print(Text.assemble((f"{check.id:<8}", "bold cyan"), check.title))
        return
    check = check_of_id(check_id.lower())
    title, _, body = check.page.partition("\n")
    console.print(Text.assemble((check.id, "bold cyan"), " ", (title.strip().rstrip("."), "bold")))
    for heading, text in sections(body):
        _print_section(console, heading, text)


def sections(page: str) -> list[tuple[str, str]]:
    """The page cut at its headings, however they are decorated; what stands before the first has the heading ''."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in page.splitlines():
        bare = line.strip().strip("#*").strip().rstrip(":").strip()
        if bare in PAGE_HEADINGS and not line.startswith("    "):
            found.append((bare, []))
        elif not (set(line.strip()) <= set("-=~") and line.strip() and found[-1][0] and not found[-1][1]):
            found[-1][1].append(line)
    return [(heading, text) for heading, lines in found if (text := "\n".join(lines).strip("\n")) or heading]


def _print_section(console: Console, heading: str, text: str) -> None:
    console.print()
    if heading:
        console.print(Text(heading, style="bold underline" if console.is_terminal else "bold"))
    console.print(Padding(Markdown(text), (0, 0, 0, 2)))
