"""Batches: which loader they came from, their samples and targets, and which call they were fed to."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import labelled, loader, small_net
from trueline.model import Batch
from trueline.recorder.fingerprint import fingerprints
from trueline.store import Run


def prints_of(x: Tensor) -> tuple[int, ...]:
    return tuple(np.frombuffer(fingerprints([x.numpy()]), ">u8").tolist())


def fed_batches(run: Run) -> list[Batch]:
    """The batch behind each root call, in order."""
    by_seq = {batch.seq: batch for batch in run.batches}
    return [by_seq[call.batch] for call in run.root_calls if call.batch is not None]


def test_loader_epoch_position_targets_and_fingerprints(recorded: Recorded) -> None:
    def script() -> None:
        data = loader()
        for _ in range(2):
            for _batch in data:
                pass

    run = recorded(script)
    (described,) = run.loaders.values()
    assert (described.dataset, described.length, described.batch_size, described.sampler) == (
        "TensorDataset", 12, 4, "SequentialSampler",
    )  # fmt: skip
    assert described.built is not None
    assert described.settings["workers"] == 0
    assert [(batch.epoch, batch.position) for batch in run.batches] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    x, y = labelled().tensors
    for batch in run.batches:
        assert batch.position is not None
        rows = slice(batch.position * 4, batch.position * 4 + 4)
        assert batch.fingerprints == prints_of(x[rows])
        assert batch.targets == tuple(y[rows].tolist())
        assert (batch.target_kind, batch.size) == ("class", 4)
        assert [(field["name"], field["shape"], field["dtype"]) for field in batch.fields] == [
            ("0", [4, 4], "float32"), ("1", [4], "int64"),
        ]  # fmt: skip


def test_shuffled_loader_names_its_sampler(recorded: Recorded) -> None:
    def script() -> None:
        for _ in loader(shuffle=True):
            pass

    run = recorded(script)
    assert [described.sampler for described in run.loaders.values()] == ["RandomSampler"]
    seen = sorted(label for batch in run.batches for label in batch.targets or ())
    assert seen == sorted((torch.arange(12) % 3).tolist())


def test_a_last_short_batch(recorded: Recorded) -> None:
    def script() -> None:
        for _ in loader(count=10):
            pass

    assert [(batch.size, len(batch.fingerprints)) for batch in recorded(script).batches] == [(4, 4), (4, 4), (2, 2)]


def test_calls_are_linked_to_the_loaders_batch(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            optimizer.zero_grad()
            F.cross_entropy(model(x.view(-1, 4)), y).backward()
            optimizer.step()

    run = recorded(script)
    assert [batch.position for batch in fed_batches(run)] == [0, 1, 2]
    assert len(run.batches) == 3, "nothing is counted twice"


def test_inputs_that_were_converted_are_linked_too(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net().double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            optimizer.zero_grad()
            F.cross_entropy(model(x.double() / 255), y).backward()
            optimizer.step()

    run = recorded(script)
    assert [batch.position for batch in fed_batches(run)] == [0, 1, 2]
    assert len(run.batches) == 3


def test_two_loaders_keep_their_names_when_one_is_rebuilt(recorded: Recorded) -> None:
    """A script that builds its training loader anew in each epoch: the validation loader is still another one."""

    def script() -> None:
        validation = DataLoader(TensorDataset(torch.zeros(2, 4), torch.zeros(2)), batch_size=2)
        for _ in range(3):
            training = loader()
            for _batch in training:
                pass
            del training
            for _batch in validation:
                pass

    run = recorded(script)
    validation = {batch.loader for batch in run.batches if batch.size == 2}
    training = {batch.loader for batch in run.batches if batch.size == 4}
    assert len(validation) == 1
    assert not validation & training
    assert {run.loaders[number].length for number in training if number is not None} == {12}
    assert {run.loaders[number].length for number in validation if number is not None} == {2}


@pytest.mark.parametrize("ahead", [1, 2, 6])
def test_batches_fetched_ahead_are_linked_to_the_call_they_feed(recorded: Recorded, ahead: int) -> None:
    """A prefetcher, or `list(loader)`, takes batches out of the loader before they are used."""

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        source = iter(loader(count=24))
        waiting = [next(source) for _ in range(ahead)]
        while waiting:
            x, y = waiting.pop(0)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            waiting.extend([batch for batch in [next(source, None)] if batch is not None])

    x = labelled(24).tensors[0]
    fed = fed_batches(recorded(script))
    assert [batch.fingerprints for batch in fed] == [prints_of(x[first : first + 4]) for first in range(0, 24, 4)]


def test_worker_processes(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        for x, _ in loader(count=8, num_workers=1):
            model(x)

    run = recorded(script)
    assert [(batch.epoch, batch.position) for batch in fed_batches(run)] == [(0, 0), (0, 1)]
    x = labelled(8).tensors[0]
    assert [batch.fingerprints for batch in run.batches] == [prints_of(x[:4]), prints_of(x[4:])]


class Sentences(Dataset[dict[str, Any]]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": torch.full((5,), index), "labels": torch.tensor(index % 2), "text": f"no {index}"}


def test_dict_batches(recorded: Recorded) -> None:
    def script() -> None:
        for _ in DataLoader(Sentences(), batch_size=3):
            pass

    first, second = recorded(script).batches
    assert [field["name"] for field in first.fields] == ["input_ids", "labels"]
    assert (first.targets, first.target_kind) == ((0.0, 1.0, 0.0), "class")
    assert first.fingerprints == prints_of(torch.arange(3).repeat_interleave(5).reshape(3, 5))
    assert not set(first.fingerprints) & set(second.fingerprints)


def test_nested_and_named_batches(recorded: Recorded) -> None:
    pair = namedtuple("pair", ["views", "label"])  # noqa: PYI024 - what users write

    def collate(rows: list[tuple[Tensor, Tensor]]) -> Any:
        x = torch.stack([row[0] for row in rows])
        return pair(views=[x, x + 1], label=torch.stack([row[1] for row in rows]))

    def script() -> None:
        for _ in loader(collate_fn=collate):
            pass

    batch = recorded(script).batches[0]
    assert [field["shape"] for field in batch.fields] == [[4, 4], [4, 4], [4]]
    assert batch.targets == (0.0, 1.0, 2.0, 0.0)


def test_iterable_dataset_has_no_length(recorded: Recorded) -> None:
    class Stream(IterableDataset[Tensor]):
        def __iter__(self) -> Any:
            return iter(torch.arange(12.0).reshape(6, 2))

    def script() -> None:
        for _ in DataLoader(Stream(), batch_size=4):
            pass

    run = recorded(script)
    assert [described.length for described in run.loaders.values()] == [None]
    assert [batch.size for batch in run.batches] == [4, 2]


def test_batches_made_by_hand(recorded: Recorded) -> None:
    x, y = labelled().tensors

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for first in range(0, 12, 6):
            optimizer.zero_grad()
            F.cross_entropy(model(x[first : first + 6]), y[first : first + 6]).backward()
            optimizer.step()

    run = recorded(script)
    assert [(batch.loader, batch.epoch, batch.position) for batch in run.batches] == [(None, None, None)] * 2
    assert [batch.fingerprints for batch in run.batches] == [prints_of(x[:6]), prints_of(x[6:])]
    assert [batch.targets for batch in run.batches] == [tuple(y[:6].tolist()), tuple(y[6:].tolist())]
    assert [batch.target_kind for batch in run.batches] == ["class", "class"]


def test_the_same_inputs_fed_twice_in_a_step_are_one_batch(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        x = torch.randn(5, 4)
        (model(x) + model(x)).sum().backward()

    run = recorded(script)
    assert len(run.batches) == 1
    assert {call.batch for call in run.root_calls} == {run.batches[0].seq}


def test_regression_targets(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Linear(4, 1)
        F.mse_loss(model(torch.randn(3, 4)), torch.tensor([[0.5], [1.5], [-2.0]])).backward()

    (batch,) = recorded(script).batches
    assert (batch.targets, batch.target_kind) == ((0.5, 1.5, -2.0), "value")


def test_statistics_of_a_batch(recorded: Recorded) -> None:
    def script() -> None:
        for _ in loader():
            pass

    stats = recorded(script).stats("batch")
    assert [(stat.position, stat.shape) for stat in stats[:2]] == [(0, (4, 4)), (1, (4,))]
    assert (stats[0].min, stats[0].max) == (0.0, 15.0)


@pytest.mark.parametrize(
    "odd",
    [
        torch.zeros(4, 0),
        torch.zeros(4, 0, 4),
        torch.zeros(4, 3, dtype=torch.complex64),
        torch.zeros(4, 3, dtype=torch.bfloat16),
        torch.zeros(4, 3, dtype=torch.float8_e4m3fn),
        torch.zeros(4, 3, dtype=torch.bool),
        torch.zeros(4, 3).to_sparse(),
        torch.zeros(()),
        torch.zeros(4, 3).t().contiguous().t(),
    ],
    ids=lambda odd: f"{odd.dtype}{tuple(odd.shape)}{odd.layout}",
)
def test_odd_tensors_in_a_batch_do_not_stop_the_recording(recorded: Recorded, odd: Tensor) -> None:
    def script() -> None:
        for batch in DataLoader([0, 1], batch_size=2, collate_fn=lambda _: (odd, torch.ones(4, 2))):
            assert batch[0] is odd

    (batch,) = recorded(script).batches
    assert len(batch.fields) == 2


def test_waiting_for_the_loader_is_measured(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader():
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    run = recorded(script)
    assert all(0 < step.wait <= step.seconds for step in run.steps)
    assert np.isclose(sum(step.wait for step in run.steps), sum(batch.wait for batch in run.batches), rtol=1e-6)
