"""The comparison with a reference on the terminal: where the two part and why, what the losses say, what else differs."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trueline.model import Comparison, Divergence
from trueline.report.words import many, source_line

_MOST_DIFFERENCES = 8
_MOST_EVIDENCE = 4
_PHASES = {
    "init": "initial weights", "data": "data", "forward": "forward pass", "loss": "loss", "backward": "backward pass",
    "update": "update",
}  # fmt: skip


def print_run_comparison(console: Console, comparison: Comparison) -> None:
    """The comparison of two runs on its own."""
    if comparison.first_divergence is not None:
        console.print(divergence_panel(comparison, comparison.first_divergence))
    else:
        compared = comparison.first_step_loss_differs is not None
        colour = "green" if compared else "yellow"
        title = Text("No divergence found" if compared else "Not compared to the end", style=f"bold {colour}")
        console.print(Panel(Text(comparison.verdict), title=title, title_align="left", border_style=colour, padding=(0, 1)))
    console.print(Group(*comparison_lines(comparison)))


def divergence_panel(comparison: Comparison, found: Divergence) -> Panel:
    """Where mine parts from the reference."""
    title = Text(f"Parts from the reference: {_PHASES[found.phase]}, step {found.step}", style="bold red")
    parts: list[RenderableType] = [Text(found.cause or "No setting was found that explains it.", style="bold")]
    if found.location is not None:
        parts += [Text(), source_line(found.location)]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column()
    if found.module:
        other = f" (in the reference: {found.reference_module})" if found.reference_module else ""
        rows.add_row("Where", Text(f"{found.module}{other}"))
    for index, text in enumerate(found.evidence[:_MOST_EVIDENCE]):
        rows.add_row("Why" if index == 0 else "", Text(text))
    rows.add_row("Losses", Text(comparison.verdict))
    if found.fix:
        rows.add_row("Fix", Text(found.fix, style="green"))
    rows.add_row("Item", Text(f"{found.item} (trueline explain {found.item})"))
    return Panel(
        Group(*parts, Text(), rows), title=title, title_align="left", border_style="red", box=box.ROUNDED, padding=(0, 1)
    )


def comparison_lines(comparison: Comparison) -> list[RenderableType]:
    """What was compared, and what differs beside the cause."""
    lines: list[RenderableType] = []
    pairs, alone = len(comparison.pairs), [each for each in comparison.unmatched if each.get("parameters")]
    text = f" {many(pairs, 'layer')} paired with the reference's"
    if alone:
        names = ", ".join(f"{each['module']} ({each['side']})" for each in alone[:4])
        text += f"; without counterpart, and not compared: {names}{' …' if len(alone) > 4 else ''}"
    lines.append(Text(f"{text}.", style="yellow" if alone else "dim"))
    lines += [Text(f" {each['suggestion']}", style="yellow") for each in comparison.unmatched if "suggestion" in each]
    cause = comparison.first_divergence.cause if comparison.first_divergence else None
    others = [each for each in comparison.differences if each["sentence"] != cause]
    if others:
        lines.append(Text(" Other settings that differ:", style="dim"))
        lines += [Text(f"  • {each['sentence']}", style="dim") for each in others[:_MOST_DIFFERENCES]]
        if len(others) > _MOST_DIFFERENCES:
            lines.append(Text(f"  … {len(others)} in all (--json has them)", style="dim"))
    lines.append(Text(f" {comparison.limits}", style="dim"))
    return lines
