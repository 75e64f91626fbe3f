"""ds.03: how many samples each class has, and how many of them are copies."""

from __future__ import annotations

import statistics

from trueline.checks.ds_03_class_imbalance import item
from trueline.datasets.summary import LabelSummary, TableSummary
from trueline.datasets.words import many, share, some
from trueline.model import Evidence, Finding

# A class with a tenth of the samples of another: the usual bound of what is called imbalanced. Below it, a classifier that never
# answers the rare one of two classes is still right nine times in ten.
IMBALANCED = 10.0
# One sample cannot be in the training and in the validation set.
_FEWEST = 2
# Copies in every tenth row put equal samples on both sides of nearly every random split.
_MANY_COPIES = 0.1
_NO_LABEL = "No label field is known, so samples cannot be counted by class. Name it with --label FIELD."


def conclude(tables: list[TableSummary]) -> Finding:
    several = len(tables) > 1
    copies = [each for each in (_copies(table, several=several) for table in tables) if each is not None]
    too_many = [each for each in copies if each.values["many"]]
    classified = [table for table in tables if table.label is not None and table.label.kind == "class" and table.label.counts]
    counted = [(table, _counts(table, several=several)) for table in classified if table.label is not None]
    uneven = [(table, evidence) for table, evidence in counted if _is_uneven(table)]
    limits = (
        "A class with less than a tenth of the samples of the largest, or with a single one, and exact copies of more than "
        f"{_MANY_COPIES:.0%} of the rows would have been seen. Whether class weights or a sampler make up for it cannot be seen "
        "here; `trueline diagnose` sees it."
    )
    if uneven:
        label = uneven[0][0].label
        return item.problem(
            _sentence(label, uneven[0][0].row_word) if label is not None else "",
            confidence=0.7,
            evidence=[evidence for _, evidence in uneven] + copies,
            fix="Collect more samples of the rare classes, or make up for it in training: class weights in the loss, or a "
            "WeightedRandomSampler; and judge by the recall of each class, not by accuracy.",
            limits=limits,
        )
    if too_many:
        return item.problem(
            f"{too_many[0].text.split(':')[0]}: there are fewer samples than it seems, and equal ones on both sides of a split.",
            confidence=0.8,
            evidence=too_many + [evidence for _, evidence in counted],
            fix="Leave out the copies, or split before anything is copied.",
            limits=limits,
        )
    if not counted:
        missing = any(table.label is not None for table in tables)
        why = "The label is not a class: there are no classes to be out of balance." if missing else _NO_LABEL
        return item.not_applicable(why, evidence=copies)
    classes = max(len(table.label.counts) for table in classified if table.label is not None)
    return item.no_problem(
        f"{classes} classes, none with less than a tenth of the samples of another.",
        limits=limits,
        evidence=[evidence for _, evidence in counted] + copies,
    )


def _is_uneven(table: TableSummary) -> bool:
    counts = [] if table.label is None else list(table.label.counts.values())
    return len(counts) > 1 and (max(counts) >= IMBALANCED * min(counts) or min(counts) < _FEWEST)


def _sentence(label: LabelSummary, word: str) -> str:
    total = sum(label.counts.values())
    rarest, fewest = min(label.counts.items(), key=lambda each: each[1])
    largest, most = max(label.counts.items(), key=lambda each: each[1])
    if most < IMBALANCED * fewest:
        return f"Class {rarest!r} has a single {word}: it cannot be both learnt and judged."
    times = f"{most / fewest:.0f} times as many"
    return f"Class {rarest!r} has {many(fewest, word)} ({share(fewest, total)}), class {largest!r} {most:,}: {times}."


def _counts(table: TableSummary, *, several: bool) -> Evidence:
    label = table.label
    if label is None:
        raise ValueError("a table without a label has no classes to count")
    counts = list(label.counts.values())
    total = sum(counts)
    rarest = min(counts)
    spread = statistics.pstdev(counts)
    few = sorted(label.counts.items(), key=lambda each: each[1])
    return Evidence(
        f"{f'{table.name}: ' if several else ''}{len(counts)} classes of {label.field}{' (guessed)' if label.guessed else ''}: "
        f"{total / len(counts):,.0f} ± {spread:,.0f} {table.row_word}s each (standard deviation); the rarest holds "
        f"{share(rarest, total)}: {some(f'{name!r} {count:,}' for name, count in few)}.",
        {
            "field": label.field,
            "guessed": label.guessed,
            "classes": len(counts),
            "counts": label.counts,
            "std": spread,
            "rarest_share": rarest / max(1, total),
            "ratio": max(counts) / max(1, rarest),
        },
    )


def _copies(table: TableSummary, *, several: bool) -> Evidence | None:
    found = table.duplicates
    if not found.extra:
        return None
    oversampled = _is_oversampling(table)
    real = table.repeats_are_real
    why = "" if real else "; the fields are coarse, so that different things look equal"
    why = "; they level the classes, as oversampling does" if oversampled else why
    pairs = some(f"{one:,} and {other:,}" for one, other in found.examples)
    return Evidence(
        f"{f'{table.name}, ' if several else ''}{many(found.extra, table.row_word)} of {table.rows:,} "
        f"({share(found.extra, table.rows)}) {'is' if found.extra == 1 else 'are'} exact "
        f"{'copy' if found.extra == 1 else 'copies'} of another: {pairs}{why}.",
        {
            "copies": found.extra,
            "groups": found.groups,
            "examples": found.examples,
            "many": real and not oversampled and found.extra > _MANY_COPIES * table.rows,
        },
    )


def _is_oversampling(table: TableSummary) -> bool:
    """Whether the copies are in the classes that would be rare without them, and the largest has hardly any."""
    label = table.label
    if label is None or label.kind != "class" or len(label.counts) < 2:
        return False
    originals = {
        name: label.counts[name] - table.duplicates.extra_by_label.get(value, 0)
        for value, name in label.hashes.items()
        if name in label.counts
    }
    largest = max(originals, key=lambda name: originals[name])
    copied = label.counts[largest] - originals[largest]
    levelled = max(originals.values()) / max(1, min(originals.values())) > 1.5 * max(label.counts.values()) / min(
        label.counts.values()
    )
    return levelled and copied < 0.02 * label.counts[largest]
