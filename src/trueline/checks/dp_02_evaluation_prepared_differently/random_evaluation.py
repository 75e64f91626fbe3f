"""Random operations that are alive in evaluation: the same sample, two tensors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec

from trueline.model import Batch, FieldStat, Location
from trueline.store import Run
from trueline.views.inputs import ModelInputs
from trueline.views.order_statistics import log10_chance_of_same_order

_LOG_CHANCE = -6.0
# Without random operations no sample changes at all; a few may come back different for other reasons, such as a lossy decoder.
_CHANGED = 0.05
_OF_CLASSIFIERS = {"cross_entropy", "nll_loss"}


class RandomOperation(msgspec.Struct, frozen=True):
    summary: str
    detail: str
    values: dict[str, Any]
    location: Location | None
    confidence: float


def random_operations(run: Run, inputs: ModelInputs) -> RandomOperation | None:
    used = {call.batch for call in inputs.roles.calls if call.seq in inputs.evaluating}
    by_loader: dict[int, dict[int, list[Batch]]] = defaultdict(lambda: defaultdict(list))
    for batch in run.batches:
        if batch.loader is not None and batch.epoch is not None and batch.seq in used:
            by_loader[batch.loader][batch.epoch].append(batch)
    for loader, epochs in by_loader.items():
        if _is_evaluation_only(run, inputs, loader):
            found = _changed_samples(run, inputs, loader, list(epochs.values()))
            if found is not None:
                return found
    return _changed_on_the_way(run, inputs)


def _is_evaluation_only(run: Run, inputs: ModelInputs, number: int) -> bool:
    """Whether a loader reads in order, and reads something else than the training set."""
    loader = run.loaders[number]
    training = {one for loaders in inputs.roles.training_loaders.values() for one in loaders if one is not None}
    if loader.sampler != "SequentialSampler" or number in training:
        return False
    same = [
        run.loaders[one]
        for one in training
        if run.loaders[one].settings.get("dataset_object") == loader.settings.get("dataset_object")
    ]
    return all(one.length != loader.length for one in same)


def _changed_samples(run: Run, inputs: ModelInputs, number: int, epochs: list[list[Batch]]) -> RandomOperation | None:
    first = epochs[0]
    fields = [field for field in first[0].fields if "float" in str(field.get("dtype")) and len(field.get("shape", [])) > 1]
    shapes = [tuple(field["shape"]) for field in fields]
    if not fields or len(set(shapes)) < len(shapes):
        # Two views of a sample, or a noisy one beside the clean one: random by design.
        return None
    for other in epochs[1:]:
        if not inputs.roles.order.any_between("optimizer_step", first[0].seq, other[0].seq):
            continue
        pairs = [
            (one, two)
            for one, two in zip(first, other, strict=False)
            if one.position == two.position and one.targets is not None and one.targets == two.targets
        ]
        if len(pairs) < min(len(first), len(other)):
            continue
        targets = [target for one, _ in pairs for target in one.targets or ()]
        total = sum(one.size for one, _ in pairs)
        changed = sum(a != b for one, two in pairs for a, b in zip(one.fingerprints, two.fingerprints, strict=False))
        moved = _moved(pairs)
        if log10_chance_of_same_order(targets) > _LOG_CHANCE or changed < max(3, _CHANGED * total) or moved:
            continue
        loader = run.loaders[number]
        return RandomOperation(
            "Random operations change the evaluation inputs: the same samples come back with other values in the "
            "next evaluation.",
            f"{changed} of {total} samples of an evaluation loader (SequentialSampler over {loader.dataset}) "
            f"differ between two of its "
            "epochs, with the same targets in the same order.",
            {"changed": changed, "samples": total, "epochs": len(epochs)},
            loader.built,
            0.9,
        )
    return None


def _moved(pairs: list[tuple[Batch, Batch]]) -> bool:
    """Whether changed samples only stand at another place: equal targets in another order of samples."""
    one = {sample for batch, _ in pairs for sample in batch.fingerprints}
    two = {sample for _, batch in pairs for sample in batch.fingerprints}
    return len(one & two) > (1 - _CHANGED) * len(one)


def _changed_on_the_way(run: Run, inputs: ModelInputs) -> RandomOperation | None:
    """The same batch of a loader enters a classifier with other values in another evaluation."""
    if not {loss.kind for loss in run.loss_calls if loss.grad} <= _OF_CLASSIFIERS or not run.loss_calls:
        # A model that learns to remove noise is tested with noise.
        return None
    judged = {scores.batch for scores in run.scores if not scores.training}
    seen: dict[tuple[int, int, tuple[int, ...], str], tuple[int, FieldStat]] = {}
    looked = differing = 0
    line = None
    for call in inputs.evaluation:
        batch = inputs.batch(call)
        if batch is None or batch.loader is None or batch.seq not in judged or call.fed_by is not None:
            continue
        calls = [one for one in inputs.roles.calls if one.batch == batch.seq]
        if len(calls) > 1:
            continue
        for stat in inputs.stats[call.seq]:
            if "float" not in stat.dtype or len(stat.shape) < 2:
                continue
            key = (call.module, batch.loader, batch.fingerprints, stat.field)
            before = seen.setdefault(key, (call.seq, stat))
            if before[0] == call.seq or not inputs.roles.order.any_between("optimizer_step", before[0], call.seq):
                continue
            looked += 1
            if before[1].mean != stat.mean:
                differing += 1
                line = call.location
    if looked < 2 or differing < looked:
        return None
    return RandomOperation(
        "Random operations change the evaluation inputs between loader and model: the same batch enters with other values.",
        f"{differing} times a batch of an evaluation loader was seen again, and every time what entered the "
        f"model had other values.",
        {"compared": looked, "different": differing},
        line,
        0.85,
    )
