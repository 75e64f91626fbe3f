"""Plants faults into healthy scripts, so that cases are many and varied. Lines stay where they are, so the fault's is known.

Each mutation is a function that looks at the syntax tree of a script and gives the places where its fault can be planted, none
when it does not apply. `python benchmarks/faults/mutate.py FOLDER` writes all the mutants there, to be read or run.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
from pathlib import Path

# Started as a file, Python knows this folder only.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.faults import (  # noqa: F401 - imported for the mutations that they register
    _mutations_data,
    _mutations_loop,
    _mutations_loss,
    _mutations_model,
)
from benchmarks.faults._case import SCRIPT, Case, bases
from benchmarks.faults._mutation import MUTATIONS, Mutation, Planting
from benchmarks.faults._source import LineMoved, Source

MOST_PER_MUTATION = 2


# A script is asked by every mutation.
parsed = functools.cache(Source)


def plantings(mutation: Mutation, text: str) -> list[tuple[Planting, str]]:
    """The places where this fault can be planted, each with the text of the script that has it."""
    source = parsed(text)
    found = []
    for planting in mutation.places(source):
        try:
            mutant = source.edited(planting.edits, planting.added)
        except LineMoved:
            continue
        if mutant != text:
            found.append((planting, mutant))
    return found


def mutants(scripts: list[Case], seed: int = 0, most: int = MOST_PER_MUTATION) -> list[Case]:
    """At most so many mutants per mutation, each in another script, chosen by the seed."""
    chosen = []
    for mutation in MUTATIONS:
        # A stream of its own: a new mutation does not change what is chosen for the others.
        draw = random.Random(f"{seed} {mutation.name}")  # noqa: S311 - no secret
        able = [(script, places) for script in scripts if (places := plantings(mutation, script.files[SCRIPT]))]
        for script, places in sorted(draw.sample(able, min(most, len(able))), key=lambda each: each[0].name):
            planting, text = draw.choice(places)
            chosen.append(_mutant(mutation, script, planting, text))
    return sorted(chosen, key=lambda case: (case.item or "", case.name))


def _mutant(mutation: Mutation, script: Case, planting: Planting, text: str) -> Case:
    return Case(
        name=f"mutants/{mutation.name}-{script.name.rpartition('/')[2]}",
        kind="faulty",
        origin="mutant",
        files={SCRIPT: text},
        item=mutation.item,
        lines=planting.lines,
        note=mutation.title,
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the mutants are written; made if it is not there")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=MOST_PER_MUTATION, help="mutants per mutation")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for case in mutants(bases(), options.seed, options.most):
        name = case.name.rpartition("/")[2]
        (options.folder / f"{name}.py").write_text(case.files[SCRIPT], encoding="utf-8")
        print(f"{name}.py: {case.item} {case.note}, line {' or '.join(map(str, case.lines)) or 'not expected'}")


if __name__ == "__main__":
    main()
