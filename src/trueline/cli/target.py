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
from trueline.cli.verdict import STANDARD_OUTPUT, check_json_target, report_run
from trueline.diagnose.conduct import SecondRun
from trueline.errors import RunNotFound, TruelineError
from trueline.launch.ranks import launcher_of
from trueline.rerun import Terms, Way
from trueline.store import find_run, is_latest
from trueline.store.manifest import keep as keep_manifest
from trueline.store.manifest import read as read_manifest


class ScriptCommand(click.Command):
    """A command that ends in a script and its words, as `python script words` does.

    Words after a script or launcher are its own; options of the command come before. Those that
    follow a script at once are the command's as well, up to the first word that is none, or `--`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self._sorted(ctx, args))
        except click.NoSuchOption as problem:
            raise TruelineError(
                f"trueline {ctx.info_name} has no option {problem.option_name}. Options of the script "
                f"itself go after it, as in: trueline {ctx.info_name} train.py {problem.option_name}"
            ) from problem

    def _sorted(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The command's own options, `--`, and the target with its words."""
        options = _Options(self.get_params(ctx))
        start = options.end(args, 0)
        parsed, _, _ = self.make_parser(ctx).parse_args(list(args[:start]))
        module = parsed.get("module")
        if module is None and (start == len(args) or args[start].startswith("-")):
            # Nothing more; or an option that is not known; or `--`, after which nothing is.
            return args
        place = start if module is not None else start + 1
        target = module or args[start]
        launches = launcher_of(target, as_module=module is not None) is not None
        end = place if launches else options.end(args, place, after_target=True)
        words = args[end + 1 :] if args[end : end + 1] == ["--"] else args[end:]
        return [*args[:start], *args[place:end], "--", *args[start:place], *words]


class _Options:
    """Tells the options of a command from other words."""

    def __init__(self, parameters: list[click.Parameter]) -> None:
        options = [each for each in parameters if isinstance(each, click.Option)]
        self._known = {name: each for each in options for name in (*each.opts, *each.secondary_opts)}

    def end(self, args: list[str], place: int, *, after_target: bool = False) -> int:
        """Where the options that begin at a place end, at the latest with `-m MODULE`, a target."""
        while place < len(args):
            options = self._in(args[place])
            if not options or (after_target and options[-1].name == "module"):
                break
            complete = options[-1].is_flag or self._holds_value(args[place], options)
            place += 1 if complete else 2
            if options[-1].name == "module":
                break
        return min(place, len(args))

    def _in(self, word: str) -> list[click.Option]:
        """The options that a word gives: one, or several of one letter. None for any other word."""
        if word.startswith("--"):
            option = self._known.get(word.partition("=")[0])
            return [] if option is None else [option]
        found: list[click.Option] = []
        for letter in word[1:] if word.startswith("-") else "":
            option = self._known.get(f"-{letter}")
            if option is None:
                return []
            found.append(option)
            if not option.is_flag:
                break
        return found

    @staticmethod
    def _holds_value(word: str, options: list[click.Option]) -> bool:
        return "=" in word if word.startswith("--") else len(word) > len(options) + 1


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared parameters to a command function."""
    for decorate in (
        click.argument("words", metavar="TARGET [ARGS]...", nargs=-1, type=click.UNPROCESSED),
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
    second_runs: list[SecondRun] = []
    if directory is None:
        script = Script(None, module, words) if module is not None else Script(words[0], None, words[1:])
        again = terms is not None and terms.way is not Way.NO
        directory = record_script(script, name, output_to_stderr=quiet, again=again)
        if terms is not None:
            second_runs = [partial(record_again, script, terms), partial(record_closer, script, terms)]
    if expected is not None:
        keep_manifest(expected, directory)
    comparison = None if given is None else partial(compare_with, given, script=script, map_file=map_file, write_map=write_map)
    return report_run(
        directory, json_target=json_target, verbose=verbose, strict=strict, second_runs=second_runs, comparison=comparison
    )


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
