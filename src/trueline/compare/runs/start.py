"""How a run is made to start where another one started: which weights go where."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path

from trueline.compare.map_file import read_map
from trueline.compare.runs.layers import layers_of, layers_of_run
from trueline.compare.runs.pairing import all_parameters
from trueline.errors import TruelineError
from trueline.model import Module, Parameter
from trueline.recorder.alignment import Alignment
from trueline.store import Run, find_run


def alignment_to(reference: str | None, map_file: str | None, *, perturbed: bool = False) -> Callable[[Path], Alignment]:
    """Makes the alignment of a run, when its directory is there. `reference`: the run to align to; None to be aligned to."""
    if reference is None:
        return functools.partial(Alignment, perturbed=perturbed)
    directory = find_run(reference)
    run = Run(directory)
    if "alignment" not in run.meta:
        raise TruelineError(
            f"{reference} has no weights and batches to start from. Record it with: trueline run --as-reference "
            f"{shlex.join(run.info.command)}"
        )
    fixed = read_map(Path(map_file)) if map_file is not None else None

    def pair(root: str, modules: list[Module], parameters: list[Parameter]) -> dict[str, str]:
        roots = {parameter.root: root for parameter in parameters}
        found = fixed or {}
        if fixed is None:
            found = all_parameters(layers_of(modules, parameters, {}, roots), layers_of_run(run))
        return found

    return functools.partial(Alignment, reference=directory, pair=pair, perturbed=perturbed)
