"""`trueline check`: the checklist on a recorded run, or on a script that is recorded first."""

from __future__ import annotations

import click

from trueline.cli.target import ScriptCommand, conclude, target_options


@click.command("check", cls=ScriptCommand)
@target_options
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    module: str | None,
    name: str | None,
    manifest: str | None,
    json_target: str | None,
    verbose: bool,
    strict: bool,
) -> None:
    """Check a recorded run (a name or how it begins, a directory, `latest`, `latest~1`) or a script.

    Words after a script, or after a launcher such as torchrun, are its own. Options of Trueline come
    before; they may also follow a run or a script at once, up to the first word that is none, or --.

    Exit code: 0 nothing found, 1 problem found, 2 wrong usage, a script that failed before it trained, or an internal
    error; 3 with --strict, nothing found in a run that is incomplete or could not be watched as a whole.
    """
    ctx.exit(
        conclude(words, module=module, name=name, manifest=manifest, json_target=json_target, verbose=verbose, strict=strict)
    )
