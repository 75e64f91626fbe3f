"""ds.02: the same sample under two labels, and labels that a classifier doubts."""

from __future__ import annotations

from trueline.checks.ds_02_wrong_labels import item
from trueline.datasets.summary import TableSummary
from trueline.datasets.words import many, share, some
from trueline.model import Conclusion, Evidence, Finding

_FIX = "Look at these samples and give each its right label, or leave them out if nobody can tell. `values` has the row numbers."


def conclude(tables: list[TableSummary]) -> Finding:
    labelled = [table for table in tables if table.label is not None and table.label.kind == "class"]
    if not labelled:
        if any(table.label is not None for table in tables):
            return item.not_applicable("The label is a number to predict or a text, not a class: equal samples may differ in it.")
        return item.not_applicable("No label field is known. Name it with --label FIELD.")
    evidence: list[Evidence] = []
    noted: list[Evidence] = []
    conflicts = 0
    for table in labelled:
        found = _conflict(table, several=len(tables) > 1)
        if found is None:
            continue
        if table.repeats_are_real:
            evidence.append(found)
            conflicts += table.duplicates.conflicts
        else:
            noted.append(found)
    doubted = [_doubted(table) for table in labelled if table.label_errors is not None]
    rows = sum(table.rows for table in labelled)
    word = labelled[0].row_word
    limits = (
        f"One pair of equal {word}s with different labels among {rows:,} would have been seen. A wrong label on a {word} "
        "without a twin is not seen here: `--label-errors` lists candidates, and `trueline diagnose` follows the samples through "
        "training."
    )
    if evidence:
        times = "is under more than one label" if conflicts == 1 else "are under more than one label"
        return item.problem(
            f"{many(conflicts, f'{word} content')} {times}: of equal {word}s at most one label can be right.",
            confidence=0.95,
            evidence=evidence + doubted + noted,
            fix=_FIX,
            limits=limits,
        )
    candidates = sum(table.label_errors.total for table in labelled if table.label_errors is not None)
    if candidates:
        missing = (
            f"{many(candidates, 'label')} that a classifier doubts must be looked at: hard {word}s and wrong labels look alike."
        )
        return Finding(
            item.id,
            item.title,
            Conclusion.NOT_CHECKED,
            f"Not checked: {missing}",
            evidence=doubted + noted,
            fix=_FIX,
            limits=limits,
        )
    if noted:
        return Finding(
            item.id,
            item.title,
            Conclusion.NOT_CHECKED,
            f"Not checked: equal {word}s have different labels, but the fields are so coarse that different things look equal.",
            evidence=doubted + noted,
            limits=limits,
        )
    return item.no_problem(f"No {word} content is under two labels.", limits=limits, evidence=doubted, confidence=0.6)


def _conflict(table: TableSummary, *, several: bool) -> Evidence | None:
    found = table.duplicates
    if not found.conflicts:
        return None
    pairs = some(f"{one:,} and {other:,}" for one, other in found.conflict_examples)
    return Evidence(
        f"{f'{table.name}: ' if several else ''}{many(found.conflicts, 'set')} of {table.row_word}s with equal features and "
        f"different labels, {many(found.conflicting, table.row_word)} in all ({share(found.conflicting, table.rows)}): {pairs}.",
        {
            "conflicts": found.conflicts,
            "rows": found.conflicting,
            "examples": found.conflict_examples,
            "pairs_expected_by_chance": table.chance_pairs,
        },
    )


def _doubted(table: TableSummary) -> Evidence:
    found = table.label_errors
    if found is None:
        raise ValueError("without --label-errors there is nothing to tell")
    worst = some(f"{table.row_word} {each.row:,} ({each.label}, rather {each.likelier})" for each in found.candidates)
    return Evidence(
        f"cleanlab doubts {many(found.total, 'label')} of {found.rows:,}, with a classifier that is right on "
        f"{found.accuracy:.0%} of unseen rows{f': {worst}' if worst else ''}.",
        {
            "candidates": [[each.row, each.label, each.likelier, round(each.quality, 4)] for each in found.candidates],
            "accuracy": found.accuracy,
            "rows": found.rows,
        },
    )
