"""ds.04: the files against a manifest of the standard dataset."""

from __future__ import annotations

from trueline.checks.ds_04_other_dataset import item
from trueline.datasets.words import many, some
from trueline.model import Evidence, Finding
from trueline.store.manifest import Differences, Manifest

_WORDS = {
    "missing": "missing",
    "truncated": "shorter than in the manifest",
    "longer": "longer than in the manifest",
    "changed": "of the same size with another content",
    "extra": "not in the manifest",
}
_MOST_PATHS = 50


def conclude(expected: Manifest | None, found: Differences | None, reference: str) -> Finding:
    if expected is None or found is None:
        return item.not_checked(
            "there is no manifest of the standard dataset to compare with. Write one where the dataset is right, with "
            "--manifest FILE, and give it here with --against FILE."
        )
    counts = {kind: getattr(found, kind) for kind in _WORDS if getattr(found, kind)}
    limits = f"Any difference in name, size or MD5 of {many(len(expected.files), 'file')} would have been seen."
    if not counts:
        return item.no_problem(f"{many(len(expected.files), 'file')} are those of {reference}.", limits=limits, confidence=1.0)
    evidence = [
        Evidence(f"{many(len(paths), 'file')} {_WORDS[kind]}: {some(paths)}.", {kind: paths[:_MOST_PATHS], "count": len(paths)})
        for kind, paths in counts.items()
    ]
    words = ", ".join(f"{len(paths):,} {_WORDS[kind]}" for kind, paths in counts.items())
    return item.problem(
        f"The files are not those of {reference}: {words}.",
        confidence=1.0,
        evidence=evidence,
        fix="Copy the files that differ again from where the manifest was made, or write a new manifest if the change is meant.",
        limits=limits,
    )
