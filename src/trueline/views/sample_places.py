"""Where samples stand in what was fetched: so that a user finds a suspicious one again."""

from __future__ import annotations

from typing import Any

from trueline.store import Run


def place_of_samples(run: Run, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """By fingerprint: the first batch with the sample (its loader, epoch and position) and the row in it. Where a loader
    reads in order, the first epoch's `index` is the place in the dataset."""
    found: dict[int, dict[str, Any]] = {}
    for batch in run.batches:
        if len(found) == len(wanted):
            break
        for row in (row for row, sample in enumerate(batch.fingerprints) if sample in wanted and sample not in found):
            place: dict[str, Any] = {"step": batch.step, "row": row}
            if batch.loader is not None and batch.position is not None:
                loader = run.loaders[batch.loader]
                place |= {"epoch": batch.epoch, "batch": batch.position}
                if loader.sampler == "SequentialSampler" and loader.batch_size:
                    place["index"] = batch.position * loader.batch_size + row
            found[batch.fingerprints[row]] = place
    return found
