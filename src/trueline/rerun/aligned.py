"""The runs that a fair comparison needs: the reference and mine from the same weights, with the same batches, without dropout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trueline.compare.map_file import write_map
from trueline.compare.runs.comparison import Aligned, parameters_of
from trueline.errors import RunNotFound
from trueline.model import FailedWatch
from trueline.rerun.sandbox.start import Rerun, Way, record_again
from trueline.rerun.terms import Terms
from trueline.store import ALIGNED_FOLDER, CLOSER_FOLDER, PERTURBED_FOLDER, Run

# Steps whose losses are compared; the first of them also tensor by tensor.
STEPS = 128
# PyNative mode and whole tensors take their time.
USUAL_SHARE = 12.0
_SHARE_OF_LIMIT = 0.7
MAP_FILE = "map.json"
_MOST_TRIES = 2
Watching = Callable[[Path], None] | None


def why_not_aligned(run: Run, terms: Terms) -> str | None:
    """Why a script cannot be run aligned; None when it can."""
    if terms.way is Way.NO:
        return "reruns are switched off (--no-rerun)"
    if not run.steps or run.info.recorder_error:
        return f"{run.info.name} did not train"
    if run.info.world_size > 1:
        return f"{run.info.name} has several ranks"
    return None


def record_reference(
    run: Run, command: list[str], terms: Terms, files_before: Run | None = None, progress: Watching = None
) -> Rerun:
    """The reference as others are aligned to it, and once more one unit in the last place beside.

    It finds the files as they were before its own run, or before the run `files_before`, beside which it was recorded.
    """
    options = [*_options(run, terms), "--as-reference"]
    made = _record(run, ALIGNED_FOLDER, options, command, terms, progress, files_before)
    if made.refused is not None:
        return made
    aligned = run.directory / ALIGNED_FOLDER
    options = [*_options(run, terms), "--align-to", str(aligned.absolute()), "--perturb"]
    return _record(run, PERTURBED_FOLDER, options, command, terms, progress, files_before)


def is_ready(reference: Run) -> bool:
    """Whether others can be aligned to the reference's run without running it again."""
    return all(_opened(reference.directory / folder) is not None for folder in (ALIGNED_FOLDER, PERTURBED_FOLDER))


def record_mine(
    run: Run,
    command: list[str],
    reference: Run,
    terms: Terms,
    fixed: dict[str, str] | None = None,
    progress: Watching = None,
) -> Rerun:
    """My script, aligned to the reference's run.

    Layers are paired by what the runs as they are show, but for those that are `fixed`. Compiled graphs do not show the order of
    calls: then the aligned run itself may tell better, and is made again.
    """
    aligned, map_file = (reference.directory / ALIGNED_FOLDER).absolute(), (run.directory / MAP_FILE).absolute()
    pairs = parameters_of(seen(run), seen(reference), fixed)
    for _ in range(_MOST_TRIES):
        # Another one may stand there, or a link.
        map_file.unlink(missing_ok=True)
        write_map(pairs, map_file)
        options = [*_options(run, terms), "--align-to", str(aligned), "--map", str(map_file)]
        made = _record(run, ALIGNED_FOLDER, options, command, terms, progress)
        both = aligned_runs(run, reference)
        better = pairs if both is None else parameters_of(both.mine, both.reference, fixed)
        if better == pairs:
            break
        pairs = better
    return made


def why_it_failed(mine: Run, reference: Run) -> str | None:
    """What ended an aligned run before its first step, or let it train otherwise; None when both trained as they should."""
    for run, doing in (
        (reference, "Run again without dropout, the reference fails"),
        (mine, "From the reference's weights and batches the script fails"),
    ):
        made = _opened(run.directory / ALIGNED_FOLDER)
        if made is not None and not made.steps:
            return f"{doing}: {made.info.error or 'it did not train'}."
        if made is not None and (lost := _alignment_lost(made)) is not None:
            return f"{run.info.name} could not be aligned: {lost.in_words}."
    return None


def aligned_runs(mine: Run, reference: Run) -> Aligned | None:
    """The aligned runs that were recorded; None where one is missing, did not train, or trained otherwise."""
    own, expected = _opened(mine.directory / ALIGNED_FOLDER), _opened(reference.directory / ALIGNED_FOLDER)
    if own is None or expected is None or not own.steps or not expected.steps:
        return None
    if own.alignment.get("reference") != str(expected.directory.absolute()):
        return None
    if _alignment_lost(own) is not None or _alignment_lost(expected) is not None:
        return None
    return Aligned(own, expected, _opened(reference.directory / PERTURBED_FOLDER))


def _alignment_lost(run: Run) -> FailedWatch | None:
    """The watch without which a run went on by itself."""
    return next((failed for failed in run.failed_anywhere if "alignment" in failed.parts), None)


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


def _options(run: Run, terms: Terms) -> list[str]:
    # A run that ends by itself keeps what it has; one that is ended does not.
    seconds = _SHARE_OF_LIMIT * terms.seconds(run, USUAL_SHARE)
    options = ["--steps", str(min(len(run.steps), STEPS)), "--seconds", f"{seconds:.0f}"]
    return [*options, "--pynative"] if run.framework == "mindspore" else options


def _record(
    run: Run,
    folder: str,
    options: list[str],
    command: list[str],
    terms: Terms,
    progress: Watching,
    files_before: Run | None = None,
) -> Rerun:
    limit = terms.seconds(run, USUAL_SHARE)
    return record_again(run, folder, options, command, limit=limit, way=terms.way, files_before=files_before, progress=progress)
