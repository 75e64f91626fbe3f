"""`trueline data`: the dataset's items of the checklist without a training run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from trueline.cli.verdict import FAILED, NOTHING_FOUND, PROBLEM_FOUND, STANDARD_OUTPUT, check_json_target, write_document
from trueline.errors import TruelineError
from trueline.model import Conclusion, Diagnosis, Finding, Verdict
from trueline.report.console import output_console, say
from trueline.store.manifest import Manifest

_STEPS = 1000


@click.command("data")
@click.argument("path", metavar="PATH")
@click.option("--label", metavar="FIELD", help="The label: a field's name, or its position. Guessed by its name otherwise.")
@click.option("--json", "json_target", metavar="FILE", help="Write the findings and all counts as JSON to FILE; - for stdout.")
@click.option("--manifest", "manifest_target", metavar="FILE", help="Write the files with sizes and MD5 to FILE.")
@click.option("--against", metavar="FILE", help="Compare the files with a manifest.")
@click.option("--label-errors", is_flag=True, help="List labels that a cross-validated classifier doubts (needs cleanlab).")
@click.option("--limit", type=click.IntRange(min=1), metavar="ROWS", help="Stop after about so many rows of each table.")
@click.option("--encoding", metavar="NAME", help="The encoding of CSV files; UTF-8 otherwise.")
@click.option("-v", "--verbose", is_flag=True, help="Show every field, and the evidence and limits of every item.")
@click.pass_context
def command(
    ctx: click.Context,
    path: str,
    label: str | None,
    json_target: str | None,
    manifest_target: str | None,
    against: str | None,
    label_errors: bool,
    limit: int | None,
    encoding: str | None,
    verbose: bool,
) -> None:
    """Check a dataset: missing values, labels, balance, duplicates, and whether it is the standard one.

    \b
    PATH is a CSV, TSV, Parquet, JSON lines, npz or npy file, a folder of such
    files or of images (a class per subfolder), or module:name of a dataset in
    Python: a torch Dataset, a sequence, a dict of arrays, or a function that
    returns one.

    Exit code: 0 nothing found, 1 problem found, 2 wrong usage or internal error.
    """
    from trueline import datasets
    from trueline.datasets import differs, imbalance, missing_values, wrong_labels
    from trueline.datasets.label_errors import find_label_errors
    from trueline.report.data import data_json, print_data_report
    from trueline.store import manifest

    check_json_target(json_target)
    root = Path(path)
    if (manifest_target is not None or against is not None) and not root.exists():
        raise TruelineError(f"A manifest is of files, and there is no file or folder {path!r}. Give the path of the data files.")
    expected = None if against is None else manifest.read(Path(against))
    tables = datasets.open_dataset(path, encoding=encoding, limit=limit)
    if label_errors:
        _refuse_without_cleanlab()
    summaries = []
    for table in tables:
        with _progress(f"reading {table.name}") as advance:
            summary = datasets.examine(table, label=label if len(tables) == 1 else None, limit=limit, progress=advance)
        if label_errors and (len(tables) == 1 or summary.label is not None):
            summary.label_errors = find_label_errors(table, summary, limit)
        summaries.append(summary)
    if label is not None and len(tables) > 1:
        raise TruelineError(f"{path} holds {len(tables)} tables. Expected --label with one: give the file that holds the label.")
    differences = None
    if expected is not None or manifest_target is not None:
        actual = _manifest_of(root)
        differences = None if expected is None else manifest.differences(expected, actual)
        if manifest_target is not None:
            manifest.write(actual, Path(manifest_target))
    findings = [
        missing_values.conclude(summaries),
        wrong_labels.conclude(summaries),
        imbalance.conclude(summaries),
        differs.conclude(expected, differences, str(against)),
    ]
    diagnosis = Diagnosis(path, _verdict_of(findings), findings, schema="trueline.data/1")
    if json_target is not None:
        write_document(data_json(diagnosis, summaries), json_target)
    if json_target != STANDARD_OUTPUT:
        print_data_report(output_console(), diagnosis, summaries, verbose=verbose)
        if manifest_target is not None:
            say(f" Manifest written to {manifest_target}")
    ctx.exit(_exit_code(diagnosis))


def _verdict_of(findings: list[Finding]) -> Verdict:
    from trueline.diagnose.conclude import headline_of
    from trueline.diagnose.rank import cause_of

    cause = cause_of(findings)
    if cause is not None:
        return Verdict("problem_found", cause.id, headline_of(cause))
    passed = [finding.id for finding in findings if finding.conclusion is Conclusion.NO_PROBLEM]
    left = [finding.id for finding in findings if finding.conclusion is not Conclusion.NO_PROBLEM]
    others = f"; {', '.join(left)} could not be concluded" if left else ""
    return Verdict("no_problem", None, f"No problem found: {', '.join(passed)} passed{others}.")


def _exit_code(diagnosis: Diagnosis) -> int:
    if diagnosis.verdict.cause is not None:
        return PROBLEM_FOUND
    return FAILED if any(each.conclusion is Conclusion.ERROR for each in diagnosis.checklist) else NOTHING_FOUND


def _refuse_without_cleanlab() -> None:
    """Before the data are read, which may take minutes."""
    from trueline.datasets.optional import require

    require("cleanlab", "for --label-errors", "label-errors")
    require("sklearn", "for --label-errors", "label-errors")


@contextmanager
def _progress(words: str) -> Iterator[Callable[[float | None, int], None] | None]:
    """A bar on standard error, if that is a terminal."""
    console = output_console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[rows]}", markup=False),
        TimeRemainingColumn(), console=console, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task(words, total=None, rows="")

        def advance(done: float | None, rows: int) -> None:
            bar.update(
                task,
                total=None if done is None else _STEPS,
                completed=(done or 0.0) * _STEPS,
                rows=f"{rows:,} rows" if rows else "",
            )

        yield advance


def _manifest_of(root: Path) -> Manifest:
    from trueline.store import manifest

    total = root.stat().st_size if root.is_file() else sum(path.stat().st_size for path in manifest.files_under(root))
    read = 0
    with _progress("checksums") as advance:

        def count(size: int) -> None:
            nonlocal read
            read += size
            if advance is not None and total:
                advance(min(1.0, read / total), 0)

        return manifest.make(root, count)
