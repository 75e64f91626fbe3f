"""Weights that one side has twice and the other once."""

from __future__ import annotations

from trueline.compare.runs.difference import Difference
from trueline.compare.runs.layers import layers_of_both, learnt_by_name
from trueline.model import Parameter
from trueline.store import Run
from trueline.store.joined_names import first_of


def tie_differences(mine: Run, reference: Run, parameters: dict[str, str]) -> list[Difference]:
    """Tables of embeddings that one side uses a second time, where the other has a parameter of its own for that. `parameters`:
    mine, and the reference's that take their place."""
    own, expected = (
        _counted_once(run, {layer.module.root for layer in layers})
        for run, layers in zip((mine, reference), layers_of_both(mine, reference), strict=True)
    )
    counterparts = {name: first_of(other) for name, other in parameters.items()}
    found = []
    for alone, table in _apart(own, expected, counterparts, reference):
        module = mine.modules[own[alone].module]
        found.append(
            Difference(
                "layer", "tied weights", "apart", "tied", "init", "cg.01",
                f"{own[alone].path} is a parameter of its own; in the reference {expected[counterparts[table]].path} is tied: "
                "it is used in that place too.",
                f"Let {own[alone].path} be the same parameter as {own[table].path}.", module.name, None,
                own[alone].initialised or module.built or module.called, -1, hidden=True,
            )
        )  # fmt: skip
    back = {other: name for name, other in counterparts.items()}
    for alone, table in _apart(expected, own, back, mine):
        module = mine.modules[own[back[table]].module]
        found.append(
            Difference(
                "layer", "tied weights", "tied", "apart", "init", "cg.01",
                f"{own[back[table]].path} is tied: it is used twice; in the reference {expected[alone].path} is a parameter of "
                "its own.",
                f"Give the place of {expected[alone].path} a parameter of its own.", module.name, None,
                module.built or module.called, -1, hidden=True,
            )
        )  # fmt: skip
    return found


def _counted_once(run: Run, roots: set[int]) -> dict[str, Parameter]:
    """The parameters of these models; those that are tied once."""
    return {name: each for name, each in learnt_by_name(run).items() if each.same_as is None and each.root in roots}


def _apart(
    one: dict[str, Parameter], other: dict[str, Parameter], counterparts: dict[str, str], other_run: Run
) -> list[tuple[str, str]]:
    """Matrices of one side without counterpart, each with the table of that side that has its shape and is an embedding on the
    other side, which has nothing left of that shape."""
    left = [each.shape for name, each in other.items() if name not in counterparts.values()]
    found = []
    for name, parameter in one.items():
        if name in counterparts or len(parameter.shape) != 2 or parameter.shape in left:
            continue
        tables = [
            paired
            for paired, counterpart in counterparts.items()
            if paired in one and one[paired].shape == parameter.shape and counterpart in other
            and other_run.modules[other[counterpart].module].kind == "embedding"
        ]  # fmt: skip
        if len(tables) == 1:
            found.append((name, tables[0]))
    return found
