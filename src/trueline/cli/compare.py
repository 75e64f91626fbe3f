"""`trueline compare`: two checkpoints, files or folders of tensors, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from trueline.cli.verdict import NOTHING_FOUND, PROBLEM_FOUND, STANDARD_OUTPUT, check_json_target, write_document
from trueline.errors import RunNotFound, TruelineError
from trueline.report.console import output_console


@click.command("compare")
@click.argument("mine", metavar="A")
@click.argument("reference", metavar="B")
@click.option("--map", "map_file", metavar="FILE", help="Which tensor of A is which of B: a JSON object of names.")
@click.option("--write-map", metavar="FILE", help="Write what was paired to FILE, to be corrected and given to --map.")
@click.option(
    "--tolerance", "units", metavar="UNITS", type=click.FloatRange(min=0), default=16.0, show_default=True,
    help="What counts as equal, in units of the rounding of the coarser number format.",
)  # fmt: skip
@click.option("--all", "every", is_flag=True, help="Compare what lies beside the models too, such as optimizers.")
@click.option("--json", "json_target", metavar="FILE", help="Write the comparison as JSON to FILE; - for stdout.")
@click.option("-v", "--verbose", is_flag=True, help="Show every pair and every name.")
@click.pass_context
def command(
    ctx: click.Context,
    mine: str,
    reference: str,
    map_file: str | None,
    write_map: str | None,
    units: float,
    every: bool,
    json_target: str | None,
    verbose: bool,
) -> None:
    """Compare two runs, checkpoints, files of tensors, or folders of them.

    \b
    A and B are recorded runs, or .pth, .pt, .ckpt, .safetensors, .npz or .npy files, folders of
    these, or dump folders of msprobe, TroubleShooter and MindSpore, of either
    framework. Tensors are paired by names, shapes, order and content.

    Exit code: 0 equal within the tolerance, 1 something differs, has no counterpart or could not be read, 2 wrong usage or
    nothing readable.
    """
    from trueline.compare import map_file as maps
    from trueline.compare.files.comparison import compare_sources
    from trueline.report.tensor_files import comparison_json, print_comparison
    from trueline.tensorfiles import open_tensors

    check_json_target(json_target)
    if is_run(mine) and is_run(reference):
        ctx.exit(_compare_runs(mine, reference, json_target))
    if is_run(mine) or is_run(reference):
        raise TruelineError(
            f"Expected two runs, or two checkpoints, files or folders of tensors. Received {mine} and {reference}. What "
            "a run kept of its tensors (trueline run --tensors) is in its folder `tensors`."
        )
    fixed = None if map_file is None else maps.read_map(Path(map_file))
    sources = open_tensors(mine), open_tensors(reference)
    with _progress(sum(entry.bytes for source in sources for entry in source.entries)) as advance:
        found = compare_sources(*sources, fixed=fixed, units=units, every=every, progress=advance)
    if write_map is not None:
        maps.write_map({each.pair.mine: each.pair.reference for each in found.pairs}, Path(write_map))
    if json_target is not None:
        write_document(comparison_json(found), json_target)
    if json_target != STANDARD_OUTPUT:
        print_comparison(output_console(), found, every=verbose)
    ctx.exit(NOTHING_FOUND if found.equal else PROBLEM_FOUND)


def _compare_runs(mine: str, reference: str, json_target: str | None) -> int:
    """Two recorded runs as they are; and as they were aligned, where `trueline diagnose --reference` has done so."""
    from trueline.compare.runs.comparison import compare_runs
    from trueline.reading import reading
    from trueline.report.comparison import print_run_comparison
    from trueline.report.json import comparison_document
    from trueline.rerun.aligned import aligned_runs, seen
    from trueline.store import Run, find_run

    own, other = Run(find_run(mine)), Run(find_run(reference))
    # Below its columns a record can say anything, and a comparison looks at all of it.
    with reading(f"{own.directory} beside {other.directory}", "Record both runs again."):
        found = compare_runs(seen(own), seen(other), aligned_runs(own, other))
    if json_target is not None:
        write_document(comparison_document(found, own.info.name, other.info.name), json_target)
    if json_target != STANDARD_OUTPUT:
        print_run_comparison(output_console(), found)
    return NOTHING_FOUND if found.first_divergence is None else PROBLEM_FOUND


def is_run(reference: str) -> bool:
    """Whether an argument names a recorded run rather than a file or folder of tensors."""
    from trueline.store import find_run

    if Path(reference).is_file():
        return False
    try:
        find_run(reference)
    except RunNotFound:
        return False
    return True


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar on standard error, if that is a terminal."""
    console = output_console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("comparing", total=total)
        yield lambda size: bar.update(task, advance=size)
