"""`trueline show`: a recorded run at a glance."""

from __future__ import annotations

import click

from trueline.cli.verdict import STANDARD_OUTPUT, check_json_target, write_document
from trueline.errors import TruelineError
from trueline.reading import reading
from trueline.report.console import output_console
from trueline.report.modules import print_modules
from trueline.report.scaler import print_scaler, scaler_json
from trueline.report.summary import print_events, print_steps, print_summary
from trueline.store import Run, find_run


@click.command("show")
@click.argument("run_name", metavar="RUN", default="latest")
@click.option("--modules", is_flag=True, help="Show every module; without it, the levels of the tree that fit on a screen.")
@click.option("--steps", "last_steps", metavar="N", type=click.IntRange(min=1), help="Show the last N steps one by one.")
@click.option("--events", is_flag=True, help="Show what happened: seeds, loads, modes, backward passes, clipping, updates.")
@click.option("--scaler", is_flag=True, help="Show the gradient scaler's log: at every step loss, overflow and scale.")
@click.option("--json", "json_target", metavar="FILE", help="With --scaler: write the log as JSON to FILE; - for stdout.")
def command(run_name: str, modules: bool, last_steps: int | None, events: bool, scaler: bool, json_target: str | None) -> None:
    """Show a run: how it ended, its loss curve, hyper-parameters, loaders and modules.

    RUN is a name or how it begins, a directory, `latest` (which it is when left out), or `latest~1` for the one before.
    """
    if json_target is not None and not scaler:
        raise TruelineError(
            "--json writes the log of the gradient scaler. Ask for it with: trueline show RUN --scaler --json FILE"
        )
    check_json_target(json_target)
    run = Run(find_run(run_name))
    try:
        # Below its columns a record can say anything, and this shows most of it.
        with reading(run.directory, "Record the run again."):
            if json_target is not None:
                write_document(scaler_json(run), json_target)
            if json_target == STANDARD_OUTPUT:
                return
            console = output_console()
            print_summary(console, run)
            if run.modules:
                print_modules(console, run, every=modules)
            if last_steps is not None:
                print_steps(console, run.steps[-last_steps:])
            if events:
                print_events(console, run, run.events)
            if scaler:
                print_scaler(console, run)
    finally:
        run.close()
