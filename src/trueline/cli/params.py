"""`trueline params`: the parameters of a checkpoint or a run, or of two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trueline.cli.compare import is_run
from trueline.cli.verdict import NOTHING_FOUND, PROBLEM_FOUND, STANDARD_OUTPUT, check_json_target, write_document
from trueline.report.console import output_console

if TYPE_CHECKING:
    from trueline.compare.files.parameters import Candidate
    from trueline.report.parameters import ParameterList


@click.command("params")
@click.argument("mine", metavar="A")
@click.argument("reference", metavar="[B]", required=False)
@click.option("--map", "map_file", metavar="FILE", help="Which parameter of A is which of B: a JSON object of names.")
@click.option("--write-map", metavar="FILE", help="Write what was paired to FILE.")
@click.option("--json", "json_target", metavar="FILE", help="Write names, shapes and pairs as JSON to FILE; - for stdout.")
@click.pass_context
def command(
    ctx: click.Context,
    mine: str,
    reference: str | None,
    map_file: str | None,
    write_map: str | None,
    json_target: str | None,
) -> None:
    """List the parameters of A; with B, side by side, and what has no counterpart.

    A and B are recorded runs, checkpoints, or files or folders of tensors.

    Exit code: 0, or 1 if something has no counterpart or could not be read; 2 wrong usage or nothing readable.
    """
    from trueline.compare import map_file as maps
    from trueline.compare.files.parameters import pair_parameters
    from trueline.report.parameters import parameters_json, print_parameters, print_side_by_side

    check_json_target(json_target)
    ours, our_candidates = _side(mine)
    theirs, pairing = None, None
    if reference is not None:
        fixed = None if map_file is None else maps.read_map(Path(map_file))
        theirs, their_candidates = _side(reference)
        pairing = pair_parameters(our_candidates, their_candidates, fixed)
        if write_map is not None:
            maps.write_map({pair.mine: pair.reference for pair in pairing.pairs}, Path(write_map))
    if json_target is not None:
        write_document(parameters_json(ours, theirs, pairing), json_target)
    if json_target != STANDARD_OUTPUT:
        if theirs is None or pairing is None:
            print_parameters(output_console(), ours)
        else:
            print_side_by_side(output_console(), ours, theirs, pairing)
    lonely = pairing is not None and (pairing.unmatched_mine or pairing.unmatched_reference)
    unread = ours.problems or (theirs is not None and theirs.problems)
    ctx.exit(PROBLEM_FOUND if lonely or unread else NOTHING_FOUND)


def _side(reference: str) -> tuple[ParameterList, list[Candidate]]:
    return _of_run(reference) if is_run(reference) else _of_file(reference)


def _of_file(path: str) -> tuple[ParameterList, list[Candidate]]:
    from functools import partial

    from trueline.compare.files.parameters import Candidate
    from trueline.report.parameters import ParameterList
    from trueline.tensorfiles import open_tensors

    source = open_tensors(path)
    kind = f"{source.kind}, model under {source.model!r}" if source.model else source.kind
    entries = source.model_entries
    candidates = [
        Candidate(
            each.name, each.shape, each.dtype, place,
            None if each.statistics is not None else partial(source.read, source.full_name(each.name)),
        )
        for place, each in enumerate(entries)
    ]  # fmt: skip
    return ParameterList(path, kind, entries, source.problems), candidates


def _of_run(name: str) -> tuple[ParameterList, list[Candidate]]:
    from trueline.compare.files.parameters import Candidate
    from trueline.report.parameters import ParameterList
    from trueline.store import Run, find_run
    from trueline.tensorfiles.source import entry_of

    run = Run(find_run(name))
    try:
        entries = [entry_of(each.name, each.shape, each.dtype, each.trainable) for each in run.parameters.values()]
        kind = f"run of {run.framework or 'no framework'}"
    finally:
        run.close()
    candidates = [Candidate(each.name, each.shape, each.dtype, place) for place, each in enumerate(entries)]
    return ParameterList(name, kind, entries), candidates
