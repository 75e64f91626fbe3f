"""The runs that a fair comparison needs: the reference and mine from the same weights, with the same batches, without dropout."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from trueline.compare.map_file import write_map
from trueline.compare.runs import Aligned, parameters_of
from trueline.errors import RunNotFound
from trueline.rerun.kept_files import can_be_kept, written_files
from trueline.rerun.once_more import record_once_more
from trueline.store import ALIGNED_FOLDER, CLOSER_FOLDER, PERTURBED_FOLDER, Run

# Steps whose losses are compared; the first of them also tensor by tensor.
STEPS = 128
_STARTING = 90.0
# PyNative mode and whole tensors take their time.
_TIMES_AS_LONG = 12.0
_SHARE_OF_LIMIT = 0.7
MAP_FILE = "map.json"
_MOST_TRIES = 2


def why_not_aligned(run: Run) -> str | None:
    """Why a script cannot be run aligned; None when it can."""
    if not run.steps or run.info.recorder_error:
        return f"{run.info.name} did not train"
    if run.info.world_size > 1:
        return f"{run.info.name} has several ranks"
    if not can_be_kept(written_files(run)):
        return f"{run.info.name} writes more files than can be put aside meanwhile"
    return None


def record_reference(run: Run, command: list[str]) -> None:
    """The reference as others are aligned to it, and once more one unit in the last place beside."""
    options = [*_options(run), "--as-reference"]
    record_once_more(run, ALIGNED_FOLDER, options, command, limit=_limit(run))
    aligned = run.directory / ALIGNED_FOLDER
    options = [*_options(run), "--align-to", str(aligned.absolute()), "--perturb"]
    record_once_more(run, PERTURBED_FOLDER, options, command, limit=_limit(run))


def is_ready(reference: Run) -> bool:
    """Whether others can be aligned to the reference's run without running it again."""
    return all(_opened(reference.directory / folder) is not None for folder in (ALIGNED_FOLDER, PERTURBED_FOLDER))


def record_mine(run: Run, command: list[str], reference: Run, fixed: dict[str, str] | None = None) -> None:
    """My script, aligned to the reference's run.

    Layers are paired by what the runs as they are show, but for those that are `fixed`. Compiled graphs do not show the order of
    calls: then the aligned run itself may tell better, and is made again.
    """
    aligned, map_file = (reference.directory / ALIGNED_FOLDER).absolute(), (run.directory / MAP_FILE).absolute()
    pairs = parameters_of(seen(run), seen(reference), fixed)
    for _ in range(_MOST_TRIES):
        write_map(pairs, map_file)
        shutil.rmtree(run.directory / ALIGNED_FOLDER, ignore_errors=True)
        options = [*_options(run), "--align-to", str(aligned), "--map", str(map_file)]
        record_once_more(run, ALIGNED_FOLDER, options, command, limit=_limit(run))
        made = aligned_runs(run, reference)
        better = pairs if made is None else parameters_of(made.mine, made.reference, fixed)
        if better == pairs:
            return
        pairs = better


def why_it_failed(mine: Run, reference: Run) -> str | None:
    """What ended an aligned run before its first step; None when both trained."""
    for run, doing in (
        (reference, "Run again without dropout, the reference fails"),
        (mine, "From the reference's weights and batches the script fails"),
    ):
        made = _opened(run.directory / ALIGNED_FOLDER)
        if made is not None and not made.steps:
            return f"{doing}: {made.info.error or 'it did not train'}."
    return None


def aligned_runs(mine: Run, reference: Run) -> Aligned | None:
    """The aligned runs that were recorded; None where one is missing or did not train."""
    own, expected = _opened(mine.directory / ALIGNED_FOLDER), _opened(reference.directory / ALIGNED_FOLDER)
    if own is None or expected is None or not own.steps or not expected.steps:
        return None
    if msgspec.json.decode(own.meta.get("alignment", "{}")).get("reference") != str(expected.directory.absolute()):
        return None
    return Aligned(own, expected, _opened(reference.directory / PERTURBED_FOLDER))


def seen(run: Run) -> Run:
    """The recording of the same script that shows most: the one in PyNative mode where there is one."""
    if not run.unseen:
        return run
    return _opened(run.directory / CLOSER_FOLDER) or run


def _opened(directory: Path) -> Run | None:
    try:
        return Run(directory)
    except RunNotFound:
        return None


def _options(run: Run) -> list[str]:
    # A run that ends by itself keeps what it has; one that is ended does not.
    options = ["--steps", str(min(len(run.steps), STEPS)), "--seconds", f"{_SHARE_OF_LIMIT * _limit(run):.0f}"]
    return [*options, "--pynative"] if run.framework == "mindspore" else options


def _limit(run: Run) -> float:
    return _STARTING + _TIMES_AS_LONG * (run.info.seconds or 60.0)
