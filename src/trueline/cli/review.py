"""`trueline review`: training samples to look at, most suspicious labels first, as a page."""

from __future__ import annotations

from pathlib import Path

import click

from trueline.report.console import say
from trueline.report.review_sheet import ABOUT, review_sheet
from trueline.store import Run, find_run


@click.command("review")
@click.argument("run_name", metavar="RUN", default="latest")
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Where the page goes.")
@click.option("--samples", metavar="N", type=click.IntRange(min=1), default=ABOUT, show_default=True, help="How many samples.")
def command(run_name: str, output: Path | None, samples: int) -> None:
    """Write an HTML page with training samples whose labels should be looked at (checklist item ds.02).

    RUN is a name or how it begins, a directory, `latest` (which it is when left out), or `latest~1` for the one before. The page
    is written to review.html unless told otherwise.
    """
    run = Run(find_run(run_name))
    try:
        page = review_sheet(run, samples)
    finally:
        run.close()
    target = output or Path("review.html")
    target.write_text(page, encoding="utf-8")
    say(f"Review sheet of {run.info.name}: {target}")
