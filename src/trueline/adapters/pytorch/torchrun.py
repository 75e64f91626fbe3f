"""The command line of torchrun: where its own options end and the training script begins."""

from __future__ import annotations

from torch.distributed.run import get_args_parser

from trueline.errors import TruelineError


def with_recorder(arguments: list[str], recorder: list[str]) -> list[str]:
    """The arguments of torchrun with `recorder` (a module and its arguments) in front of the training script, so that every
    process that torchrun starts is recorded."""
    parsed = get_args_parser().parse_args(arguments)
    if parsed.no_python or parsed.run_path:
        raise TruelineError(
            "torchrun was told not to start its script with python (--no-python or --run-path), so it cannot be recorded. "
            "Leave that option out."
        )
    own = len(arguments) - len(parsed.training_script_args) - 1
    options = [option for option in arguments[:own] if option not in {"-m", "--module"}]
    script = ["-m", parsed.training_script] if parsed.module else [parsed.training_script]
    return [*options, "-m", *recorder, *script, *parsed.training_script_args]
