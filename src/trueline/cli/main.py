"""The `trueline` command."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from typing import NoReturn

import click

import trueline
from trueline.cli.run import Launch
from trueline.errors import TruelineError
from trueline.output import warn
from trueline.store.leftovers import clear_leftovers

COMMANDS = ("run", "diagnose", "check", "compare", "show", "runs", "data", "params", "convert", "review", "explain", "doctor")


class _Commands(click.Group):
    """Imports a command's file when it is asked for, so that `trueline run` starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"trueline.cli.{cmd_name}").command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(trueline.__version__, prog_name="trueline")
def cli() -> None:
    """Find where and why a training run goes wrong, from the unmodified script.

    \b
    trueline diagnose train.py      record the script, check the record, name the cause
    trueline run train.py --lr 0.1  record only; behaves as python train.py --lr 0.1
    """


def _tell(problem: click.ClickException) -> None:
    shown = io.StringIO()
    problem.show(file=shown)
    for line in shown.getvalue().rstrip("\n").split("\n"):
        _line(line)


def _line(words: str) -> None:
    from trueline.report.console import say

    say(words, stderr=True)


def main() -> NoReturn:
    """Entry point. Exit codes: 0 nothing found, 1 problem found, 2 wrong usage or internal error, 3 with
    --strict where not all was recorded; `run` gives the script's."""
    clear_leftovers()
    try:
        result = cli.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as problem:
        _tell(problem)
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except TruelineError as problem:
        warn(str(problem))
        sys.exit(2)
    except Exception:  # noqa: BLE001 - the last boundary: exit code 1 says that a problem was found, which is not so
        for line in traceback.format_exc().rstrip("\n").split("\n"):
            _line(line)
        sys.exit(2)
    if isinstance(result, Launch):
        # Outside of click, which would turn the script's own KeyboardInterrupt and EOFError into messages of its own.
        result.execute()
        sys.exit(0)
    sys.exit(result if isinstance(result, int) else 0)
