"""The command line of msrun: where its own options end and the training script begins."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from mindspore.parallel.cluster.run import get_args

from trueline.errors import TruelineError
from trueline.output import warn

# What msrun takes for an interpreter instead of a script; and the options of python that are followed by a value.
_PYTHON = {"python", "python3"}
_WITH_VALUE = {"-X", "-W"}


def with_recorder(arguments: list[str], recorder: list[str]) -> list[str]:
    """The arguments of msrun with `recorder` (a module and its arguments) in front of the training script, so that every
    process that msrun starts is recorded; and msrun waits for them, because the run is over when they are."""
    parsed = _parsed(arguments)
    if parsed.task_script == "pytest":
        raise TruelineError("msrun was told to start pytest, which cannot be recorded. Give it the training script.")
    if parsed.local_worker_num < parsed.worker_num and parsed.node_rank < 0:
        raise TruelineError(
            f"msrun starts {parsed.local_worker_num} of {parsed.worker_num} processes here and was not told which of them: their "
            "ranks are not known before they meet. Give --node_rank, on every machine another one."
        )
    own = arguments[: len(arguments) - len(parsed.task_script_args) - 1]
    if not parsed.join:
        own = [*own, "--join=True"]
        warn("msrun is told to wait for its processes (--join=True): the run ends with them.")
    python, script = [parsed.task_script], [parsed.task_script, *parsed.task_script_args]
    if parsed.task_script in _PYTHON:
        options, script = _split(parsed.task_script_args)
        python += options
    else:
        python = ["python"]
    _let_python_be_ours()
    return [*own, *python, "-m", *recorder, *script]


def _parsed(arguments: list[str]) -> Any:
    """As msrun reads them, which looks nowhere but in `sys.argv`."""
    kept = sys.argv
    sys.argv = ["msrun", *arguments]
    try:
        return get_args()
    finally:
        sys.argv = kept


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The options of python itself, and the script or module with its arguments."""
    place = 0
    while place < len(words) and words[place].startswith("-") and words[place] != "-m":
        if words[place].startswith("-c"):
            raise TruelineError(
                "msrun was told to run code (python -c), which cannot be recorded. Give it a script or -m MODULE."
            )
        place += 2 if words[place] in _WITH_VALUE else 1
    return words[:place], words[place:]


def _let_python_be_ours() -> None:
    """The launcher starts `python` by that name. It must be the one that has Trueline."""
    folder = str(Path(sys.executable).parent)
    found = shutil.which("python")
    if found is None or str(Path(found).parent) != folder:
        os.environ["PATH"] = os.pathsep.join([folder, os.environ.get("PATH", os.defpath)])
