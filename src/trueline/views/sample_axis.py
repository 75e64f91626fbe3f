"""How many samples a step has, where the run proves which axis they are on."""

from __future__ import annotations

from trueline.model import Batch, Loader, LossCall
from trueline.store import Run


def sample_counts(run: Run) -> dict[int, int]:
    """By step: the number of samples that lie along the first axis of what the models are fed.

    Proven by a loss with one target per sample, or by a shuffling loader all of whose fields have its batch size first. Axes
    of time are not taken for samples: targets of sequence models are flattened or have a second axis.
    """
    loaders = run.loaders
    found: dict[int, int] = {}
    for batch in run.batches:
        loader = loaders.get(batch.loader) if batch.loader is not None else None
        firsts = {tuple(field.get("shape") or ())[:1] for field in batch.fields}
        if (
            loader is not None
            and loader.batch_size is not None
            and firsts == {(loader.batch_size,)}
            and _is_shuffled(loader, batch)
        ):
            found[batch.step] = loader.batch_size
    for loss in run.loss_calls:
        count = _one_target_per_sample(loss)
        if loss.grad and count is not None:
            found[loss.step] = count
    return {step: count for step, count in found.items() if count > 1}


def _is_shuffled(loader: Loader, batch: Batch) -> bool:
    """Only of what was shuffled is it certain that its first axis is no axis of time."""
    return loader.sampler == "RandomSampler" and len(batch.fields) > 1 and len(batch.fingerprints) == batch.size


def _one_target_per_sample(loss: LossCall) -> int | None:
    target, given = list(loss.target.get("shape") or []), list(loss.input.get("shape") or [])
    if not target or not given or target[0] != given[0] or any(size != 1 for size in target[1:]):
        return None
    return int(target[0])
