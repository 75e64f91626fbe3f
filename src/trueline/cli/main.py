"""The `trueline` command."""

from __future__ import annotations

import importlib
import io
import sys
import traceback
from typing import NoReturn

import click

import trueline
from trueline.cli.launch import Launch
from trueline.errors import TruelineError
from trueline.output import warn, warn_here

# Each with what the list of commands says of it: that is told without importing any of them.
COMMANDS = {
    "run": "Record a script; it behaves as under plain python.",
    "diagnose": "Record a script, check it, and name the cause of what is wrong.",
    "check": "Check a recorded run.",
    "compare": "Compare two runs, checkpoints, files or folders of tensors.",
    "show": "Show a run: its end, loss curve, settings, loaders, modules.",
    "runs": "List the recorded runs; delete some; prune old ones.",
    "data": "Check a dataset that is not trained with yet.",
    "params": "List the parameters of one model, or of two side by side.",
    "convert": "Convert weights between PyTorch, MindSpore and safetensors.",
    "review": "Write a page with training samples whose labels are suspicious.",
    "explain": "Print what an item of the checklist checks, and how.",
    "doctor": "Examine the environment.",
}


class _Commands(click.Group):
    """Imports a command's file when it is asked for, so that `trueline run` starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"trueline.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(trueline.__version__, prog_name="trueline")
def cli() -> None:
    """Find where and why a training run goes wrong, from the unmodified script.

    \b
    trueline diagnose train.py      record the script, check the record, name the cause
    trueline run train.py --lr 0.1  record only; behaves as python train.py --lr 0.1
    """
    from trueline.store.leftovers import clear_leftovers

    clear_leftovers()


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
    warn_here()
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
