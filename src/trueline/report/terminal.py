"""The report of a diagnosis on the terminal: the verdict first, then the checklist, the evidence on request."""

from __future__ import annotations

import re
import shlex

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trueline.diagnose.conclude import sentence_of
from trueline.diagnose.ending import how_it_ended
from trueline.model import Conclusion, Diagnosis, Evidence, Finding
from trueline.model.parts import in_words
from trueline.report.comparison import comparison_lines, divergence_panel
from trueline.report.words import MARKS, many, number, percent, seconds, source_line
from trueline.store import Run

_MOST_EVIDENCE_IN_VERDICT = 3
_MOST_BARS = 20
_BAR_WIDTH = 40


def print_report(console: Console, diagnosis: Diagnosis, run: Run, *, verbose: bool = False) -> None:
    """Write the report. Without `verbose` it fits on a screen and says how to see more."""
    comparison = diagnosis.comparison
    if comparison is not None and comparison.first_divergence is not None:
        console.print(divergence_panel(comparison, comparison.first_divergence))
    else:
        console.print(verdict_panel(diagnosis))
    console.print(_recording_line(run))
    if comparison is not None:
        console.print(Group(*comparison_lines(comparison)))
    console.print()
    console.print(checklist_table(diagnosis))
    if verbose:
        for finding in diagnosis.checklist:
            console.print()
            console.print(details_of(finding))
    else:
        console.print()
        console.print(Text(f" Evidence and limits: trueline check {shlex.quote(diagnosis.run)} -v", style="dim"), soft_wrap=True)
        if diagnosis.verdict.cause:
            console.print(Text(f" About this fault:    trueline explain {diagnosis.verdict.cause}", style="dim"))


def verdict_panel(diagnosis: Diagnosis) -> Panel:
    cause = next((finding for finding in diagnosis.checklist if finding.id == diagnosis.verdict.cause), None)
    if cause is not None:
        title = Text(f"Problem found: {cause.id} {cause.title}", style="bold red")
        return Panel(
            _cause(diagnosis, cause), title=title, title_align="left", border_style="red", box=box.ROUNDED, padding=(0, 1)
        )
    if diagnosis.verdict.status != "no_problem":
        style, title_words = "yellow", "Inconclusive"
    elif diagnosis.verdict.incomplete is not None:
        style, title_words = "yellow", "No problem found in an incomplete run"
    else:
        style, title_words = "green", "No problem found"
    body = Text(diagnosis.verdict.headline)
    return Panel(body, title=Text(title_words, style=f"bold {style}"), title_align="left", border_style=style, padding=(0, 1))


def _cause(diagnosis: Diagnosis, cause: Finding) -> RenderableType:
    parts: list[RenderableType] = [Text(cause.summary, style="bold")]
    if cause.location is not None:
        parts += [Text(), source_line(cause.location)]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column()
    for index, evidence in enumerate(_different(cause.evidence)[:_MOST_EVIDENCE_IN_VERDICT]):
        rows.add_row("Why" if index == 0 else "", Text(evidence.text))
    if cause.fix:
        rows.add_row("Fix", Text(cause.fix, style="green"))
    rows.add_row("Sure", Text(_certainty(cause)))
    others = [each.id for each in diagnosis.checklist if each.conclusion is Conclusion.PROBLEM_FOUND and each.id != cause.id]
    if others:
        rows.add_row("Also", Text(f"{', '.join(others)} (see the checklist)"))
    if diagnosis.nonfinite is not None:
        rows.add_row("NaN", Text(sentence_of(diagnosis.nonfinite)))
    parts += [Text(), rows]
    return Group(*parts)


def _different(evidence: list[Evidence]) -> list[Evidence]:
    """Without those that say the same of another step, with other numbers."""
    return list({re.sub(r"[\d.,]+", "", each.text): each for each in reversed(evidence)}.values())[::-1]


def _certainty(finding: Finding) -> str:
    confirmed = {True: ", confirmed by a rerun without the fault", False: ", and a rerun without it did not help", None: ""}
    return percent(finding.confidence) + confirmed[finding.confirmed]


def _recording_line(run: Run) -> Group:
    """What was recorded, and how the script ended when it did not end well."""
    words = [f"Run {run.info.name}", many(len(run.steps), "step")]
    if run.info.seconds is not None:
        words.append(seconds(run.info.seconds))
    lines = [Text(" " + " · ".join(words), style="dim")]
    if (trouble := how_it_ended(run.info)) is not None:
        checked = " What was recorded until then is checked." if run.steps else ""
        lines.append(Text(f" {trouble}{checked}", style="yellow"))
    if run.info.recorder_error:
        lines.append(Text(f" The recorder could not go on: {run.info.recorder_error}", style="yellow"))
    for failed in run.failed_anywhere:
        missing = f"T{failed.in_words[1:]}. Not complete from then on: {in_words(failed.parts)}."
        lines.append(Text(f" {missing} The traceback: trueline doctor --last", style="yellow"))
    return Group(*lines)


def checklist_table(diagnosis: Diagnosis) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True, padding=(0, 1), collapse_padding=True)
    table.add_column("item", no_wrap=True)
    table.add_column("conclusion", no_wrap=True)
    table.add_column("sure", justify="right", no_wrap=True)
    table.add_column("what and where", overflow="fold")
    for finding in diagnosis.checklist:
        mark, words, style = MARKS[finding.conclusion]
        what = Text(finding.title)
        if finding.location:
            what.append(f"  {finding.location}", style="cyan")
        if finding.consequence_of:
            what.append(f"  follows from {finding.consequence_of}", style="dim")
        decided = finding.conclusion in {Conclusion.PROBLEM_FOUND, Conclusion.NO_PROBLEM}
        sure = percent(finding.confidence) if decided else ""
        table.add_row(finding.id, Text(f"{mark} {words}", style=style), sure, what)
    return table


def details_of(finding: Finding) -> RenderableType:
    """Everything a finding holds."""
    mark, words, style = MARKS[finding.conclusion]
    heading = Text(f"{mark} {finding.id} ", style=style)
    heading.append(finding.title, style="bold not dim default")
    heading.append(f"  {words}")
    parts: list[RenderableType] = [Text(finding.summary)]
    if finding.location:
        parts.append(source_line(finding.location))
    parts += [_evidence(each) for each in finding.evidence]
    if finding.fix:
        parts.append(_labelled("Fix", finding.fix))
    if finding.limits and finding.limits not in finding.summary:
        parts.append(_labelled("Limits", finding.limits))
    return Group(heading, Padding(Group(*parts), (0, 0, 0, 4), expand=False))


def _labelled(label: str, text: str) -> Text:
    return Text.assemble((f"{label}: ", "bold"), text)


def _evidence(evidence: Evidence) -> Group:
    text = Text(f"• {evidence.text}")
    origin = [] if evidence.step is None else [f"step {evidence.step}"]
    if evidence.location is not None:
        origin.append(str(evidence.location))
    if origin:
        text.append(f"  [{', '.join(origin)}]", style="dim cyan")
    lines = []
    for name, value in evidence.values.items():
        if name == "counts" and isinstance(value, dict):
            lines += _bars(value)
        else:
            lines.append(f"{name} = {_value(value)}")
    return Group(text, *(Text(f"    {line}", style="dim") for line in lines))


def _bars(counts: dict[str, int]) -> list[str]:
    """A bar per class; where there are many, of the largest and the rarest."""
    rows = sorted(counts.items(), key=lambda item: -item[1])
    most = max(1, rows[0][1]) if rows else 1
    shown = rows if len(rows) <= _MOST_BARS else [*rows[: _MOST_BARS // 2], ("…", 0), *rows[-_MOST_BARS // 2 :]]
    width = max((len(str(name)) for name, _ in shown), default=1)
    return [
        f"{name!s:>{width}} {'█' * max(1, round(_BAR_WIDTH * count / most))} {number(count)}" if name != "…" else "…"
        for name, count in shown
    ]


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        shown = ", ".join(_value(each) for each in value[:8])
        return f"[{shown}{f', … {len(value)} in all' if len(value) > 8 else ''}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_value(each)}" for key, each in list(value.items())[:8]) + "}"
    return number(value)
