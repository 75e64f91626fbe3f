"""The options and arguments that `check` and `diagnose` share: a run or a script, and where the report goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from trueline.cli.recording import record_again, record_closer, record_script
from trueline.cli.reference import Reference, compare_with
from trueline.cli.script import Script
from trueline.cli.verdict import STANDARD_OUTPUT, Reruns, check_json_target, report_run
from trueline.errors import RunNotFound, TruelineError
from trueline.rerun import Terms, Way
from trueline.store import find_run, is_latest
from trueline.store.manifest import keep as keep_manifest
from trueline.store.manifest import read as read_manifest


class ScriptCommand(click.Command):
    """A command whose last arguments may be those of a script: an unknown option was most likely meant for that."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            raise TruelineError(
                f"trueline {ctx.info_name} has no option {problem.option_name}. "
                f"Options of the script itself go after --, as in: trueline {ctx.info_name} train.py -- {problem.option_name}"
            ) from problem


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared parameters to a command function."""
    for decorate in (
        click.argument("words", metavar="TARGET [-- ARGS]...", nargs=-1, type=click.UNPROCESSED),
        click.option("-v", "--verbose", is_flag=True, help="Show the evidence, values and limits of every item."),
        click.option(
            "--strict", is_flag=True, help="Exit code 3 where nothing is found in a run that was not recorded as a whole."
        ),
        click.option("--json", "json_target", metavar="FILE", help="Write the diagnosis as JSON to FILE; - for stdout."),
        click.option(
            "--manifest",
            metavar="FILE",
            help="Files that the dataset should have (see trueline data --manifest); kept with the run.",
        ),
        click.option("--name", help="Name of the new run."),
        click.option("-m", "--module", metavar="MODULE", help="Record this module, as python -m does."),
    ):
        function = decorate(function)
    return function


def conclude(
    words: tuple[str, ...],
    *,
    module: str | None,
    name: str | None,
    manifest: str | None,
    json_target: str | None,
    verbose: bool,
    strict: bool = False,
    terms: Terms | None = None,
    trusted: bool = False,
    reference: str | None = None,
    map_file: str | None = None,
    write_map: str | None = None,
) -> int:
    """Record the target first unless it is a run, then check and report it; gives the exit code.

    `terms`: of second runs; None for none at all.
    """
    check_json_target(json_target)
    expected = None if manifest is None else read_manifest(Path(manifest))
    directory = None if module is not None else _run_of(words, name)
    quiet = json_target == STANDARD_OUTPUT
    given = None
    if reference is not None and terms is not None:
        given = Reference(reference, terms, output_to_stderr=quiet, trusted=trusted)
    script: Script | None = None
    reruns: Reruns | None = None
    if directory is None:
        script = Script(None, module, words) if module is not None else Script(words[0], None, words[1:])
        again = terms is not None and terms.way is not Way.NO
        directory = record_script(script, name, output_to_stderr=quiet, again=again)
        if terms is not None:
            reruns = Reruns(partial(record_again, script, terms), partial(record_closer, script, terms))
    if expected is not None:
        keep_manifest(expected, directory)
    comparison = None if given is None else partial(compare_with, given, script=script, map_file=map_file, write_map=write_map)
    return report_run(directory, json_target=json_target, verbose=verbose, strict=strict, reruns=reruns, comparison=comparison)


def _run_of(words: tuple[str, ...], name: str | None) -> Path | None:
    """The run directory that the first word names; None for a script."""
    if not words:
        raise TruelineError("Nothing to check was given. Give a script, or a run that `trueline runs` lists.")
    if Path(words[0]).is_file() or words[0].endswith(".py"):
        return None
    try:
        directory = find_run(words[0])
    except RunNotFound:
        if is_latest(words[0]):
            raise
        return None
    if len(words) > 1 or name is not None:
        received = f"arguments {' '.join(words[1:])}" if len(words) > 1 else f"--name {name}"
        raise TruelineError(f"{words[0]!r} is a recorded run, which takes neither arguments nor a name. Received {received}.")
    return directory
