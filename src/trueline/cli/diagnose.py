"""`trueline diagnose`: record a script, check it, and name the cause."""

from __future__ import annotations

import click

from trueline.cli.target import ScriptCommand, conclude, target_options
from trueline.rerun import Terms, Way


def _share(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    text = value.strip()
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1000.0:
        raise click.BadParameter(f"Expected a share of the script's time such as 50% or 2. Received {value!r}.")
    return share


@click.command("diagnose", cls=ScriptCommand)
@target_options
@click.option("--reference", metavar="REF", help="A script (with arguments in quotes) or a run to compare with.")
@click.option("--map", "map_file", metavar="FILE", help="With --reference: which parameter is which, a JSON object of names.")
@click.option("--write-map", metavar="FILE", help="With --reference: write what was paired, to be corrected and given to --map.")
@click.option("--no-rerun", is_flag=True, help="Run nothing a second time, whatever else is asked for.")
@click.option(
    "--rerun",
    "way",
    type=click.Choice([str(way) for way in Way]),
    default=str(Way.SANDBOX),
    show_default=True,
    help="How second runs are made: in a sandbox; in one with network; in none (unsafe: they write over your files); not at all.",
)
@click.option(
    "--rerun-time",
    "share",
    metavar="SHARE",
    callback=_share,
    help="How long each second run may take, as a share of the script's own time such as 50%, beside a minute to start.",
)
@click.option("--trust", "trusted", is_flag=True, help="Run the commands of recorded runs too that are not your own.")
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
    reference: str | None,
    map_file: str | None,
    write_map: str | None,
    no_rerun: bool,
    way: str,
    share: float | None,
    trusted: bool,
) -> None:
    """Record an unmodified training script, check it, and name the cause of what is wrong with its line.

    Words after the script, or after a launcher such as torchrun, are its own, as in: trueline
    diagnose train.py --lr 0.1. Options of Trueline come before; they may also follow a script at
    once, up to the first word that is none, or --.

    A recorded run is accepted in place of the script. A script that fails or is stopped with Ctrl-C
    is checked up to its last complete step.

    A script that sets a seed is run twice: the first 64 steps again, without output, to see whether they can be repeated.
    One of MindSpore's graph mode is run once more in PyNative mode, where more of it can be seen, for about as long as it
    took. Second runs take place in a sandbox: the files are as they were before the first run, nothing that is written
    lasts, and there is no network. Where the kernel allows none there is no second run. Leave them out with --no-rerun.

    With --reference, the reference is recorded too; then both are run once more from the same weights, with the same batches and
    without dropout, and compared: losses, layers, gradients, updates, settings.

    Exit code: 0 nothing found, 1 problem found, 2 wrong usage, a script that failed before it trained, or an internal
    error; 3 with --strict, nothing found in a run that is incomplete or could not be watched as a whole.
    """
    terms = Terms(Way.NO if no_rerun else Way(way), share)
    ctx.exit(
        conclude(
            words, module=module, name=name, manifest=manifest, json_target=json_target, verbose=verbose, strict=strict,
            terms=terms, trusted=trusted, reference=reference, map_file=map_file, write_map=write_map,
        )
    )  # fmt: skip
