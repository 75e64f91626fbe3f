"""Samples that a loader gave before are not read again, and what is recorded is the same as if they were."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset, TensorDataset

from tests.adapters.pytorch.conftest import Recorded
from trueline.adapters.pytorch import data as batches_module
from trueline.recorder.fingerprint import fingerprints

EPOCHS = 24
SIZE = 8


def prints_of(x: Tensor) -> tuple[int, ...]:
    return tuple(np.frombuffer(fingerprints([x.numpy()]), ">u8").tolist())


Delivered = list[tuple[tuple[int, ...], tuple[float, ...] | None]]


def delivered(
    recorded: Recorded, loader: DataLoader[Any], between: Callable[[int], None] | None = None
) -> tuple[Delivered, Delivered]:
    """What came out of the loader, and what was recorded of it."""
    given: Delivered = []

    def script() -> None:
        for epoch in range(EPOCHS):
            if between is not None:
                between(epoch)
            given.extend((prints_of(x), tuple(y.double().tolist())) for x, y in loader)

    run = recorded(script)
    return given, [(batch.fingerprints, batch.targets) for batch in run.batches]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one for every batch that is read."""
    counted: list[int] = []
    original = batches_module._read

    def read(*args: Any) -> Any:
        counted.append(1)
        return original(*args)

    monkeypatch.setattr(batches_module, "_read", read)
    return counted


def tensors(count: int = 32) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 3), torch.randint(0, 4, (count,))


@pytest.mark.parametrize("part", [False, True])
def test_later_epochs_are_recalled(recorded: Recorded, reads: list[int], part: bool) -> None:
    dataset = TensorDataset(*tensors())
    loader = DataLoader(Subset(dataset, list(range(5, 29))) if part else dataset, batch_size=SIZE, shuffle=True)
    given, seen = delivered(recorded, loader)
    assert seen == given
    assert len(reads) < len(given) / 4


def test_a_change_in_place_is_seen(recorded: Recorded) -> None:
    x, y = tensors()

    def change(epoch: int) -> None:
        if epoch == 10:
            x.mul_(2)
        if epoch == 15:
            y.copy_((y + 1) % 4)

    given, seen = delivered(recorded, DataLoader(TensorDataset(x, y), batch_size=SIZE, shuffle=True), change)
    assert seen == given


def test_a_change_behind_the_tensors_back_is_seen_soon(recorded: Recorded) -> None:
    array = np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32)

    def change(epoch: int) -> None:
        if epoch == 10:
            array[:] *= 2

    dataset = TensorDataset(torch.from_numpy(array), torch.zeros(32, dtype=torch.int64))
    given, seen = delivered(recorded, DataLoader(dataset, batch_size=SIZE, shuffle=True), change)
    per_epoch = 32 // SIZE
    assert seen[: 10 * per_epoch] == given[: 10 * per_epoch]
    assert seen[15 * per_epoch :] == given[15 * per_epoch :]


def test_targets_that_are_no_classes_and_missing_values_are_read_every_time(recorded: Recorded, reads: list[int]) -> None:
    x, y = tensors()
    given, seen = delivered(recorded, DataLoader(TensorDataset(x, torch.randn(32)), batch_size=SIZE, shuffle=True))
    assert seen == given
    assert len(reads) == len(given)
    reads.clear()
    x[7, 1] = torch.nan

    def script() -> None:
        for _ in range(EPOCHS):
            for _batch in DataLoader(TensorDataset(x, y), batch_size=SIZE):
                pass

    missing = [batch for batch in recorded(script).batches if batch.nonfinite]
    assert len(missing) == EPOCHS


def test_what_is_put_together_otherwise_is_read_every_time(recorded: Recorded, reads: list[int]) -> None:
    def noisy(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        x = torch.stack([sample[0] for sample in samples])
        return x + torch.randn_like(x), torch.stack([sample[1] for sample in samples])

    loader = DataLoader(TensorDataset(*tensors()), batch_size=SIZE, shuffle=True, collate_fn=noisy)
    given, seen = delivered(recorded, loader)
    assert seen == given
    assert len(reads) == len(given)


def test_other_tensors_and_other_parts_are_seen_at_once(recorded: Recorded) -> None:
    dataset = TensorDataset(*tensors())
    part = Subset(dataset, list(range(16)))

    def change(epoch: int) -> None:
        if epoch == 10:
            dataset.tensors = tensors()
        if epoch == 15:
            part.indices = list(range(16, 32))

    given, seen = delivered(recorded, DataLoader(part, batch_size=SIZE, shuffle=True), change)
    assert seen == given


def test_the_dataset_is_not_kept_alive(recorded: Recorded) -> None:
    gone: list[bool] = []

    def script() -> None:
        dataset = TensorDataset(*tensors())
        reference = weakref.ref(dataset)
        loader = DataLoader(dataset, batch_size=SIZE)
        for _ in range(3):
            for _batch in loader:
                pass
        del dataset, loader, _batch
        gc.collect()
        gone.append(reference() is None)

    recorded(script)
    assert gone == [True]
