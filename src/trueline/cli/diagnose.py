"""`trueline diagnose`: record a script, check it, and name the cause."""

from __future__ import annotations

import click

from trueline.cli.target import ScriptCommand, conclude, target_options


@click.command("diagnose", cls=ScriptCommand)
@target_options
@click.option("--reference", metavar="REF", help="A script (with arguments in quotes) or a run to compare with.")
@click.option("--map", "map_file", metavar="FILE", help="With --reference: which parameter is which, a JSON object of names.")
@click.option("--write-map", metavar="FILE", help="With --reference: write what was paired, to be corrected and given to --map.")
@click.option("--no-rerun", is_flag=True, help="Do not run the script a second time, neither to repeat it nor to look closer.")
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    module: str | None,
    name: str | None,
    manifest: str | None,
    json_target: str | None,
    verbose: bool,
    reference: str | None,
    map_file: str | None,
    write_map: str | None,
    no_rerun: bool,
) -> None:
    """Record an unmodified training script, check it, and name the cause of what is wrong with its line.

    Arguments of the script go after --, as in: trueline diagnose train.py -- --lr 0.1. A recorded run is accepted in
    place of the script. A script that fails or is stopped with Ctrl-C is checked up to its last complete step.

    A script that sets a seed is run twice: the first 64 steps again, without output, to see whether they can be repeated.
    One of MindSpore's graph mode is run once more in PyNative mode, where more of it can be seen, for about as long as it
    took. The files that it wrote are put back afterwards; leave this out with --no-rerun.

    With --reference, the reference is recorded too; then both are run once more from the same weights, with the same batches and
    without dropout, and compared: losses, layers, gradients, updates, settings.

    Exit code: 0 nothing found, 1 problem found, 2 wrong usage, a script that failed before it trained, or an internal
    error.
    """
    ctx.exit(
        conclude(
            words, module=module, name=name, manifest=manifest, json_target=json_target, verbose=verbose, rerun=not no_rerun,
            reference=reference, map_file=map_file, write_map=write_map,
        )
    )  # fmt: skip
