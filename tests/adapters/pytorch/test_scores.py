"""Margins and predictions of samples, evaluation losses, features of inputs, updates, dead units, and missing values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.utils.data import DataLoader, TensorDataset

from tests.adapters.pytorch.conftest import Recorded


@pytest.fixture(autouse=True)
def _all_batches_are_affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, nothing is left out for want of time."""
    monkeypatch.setattr("trueline.adapters.shared.scores._ALLOWANCE", 1e6)


def _data(size: int = 24) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(size, 5), torch.arange(size) % 3


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    scores: torch.Tensor = model(x)
    F.cross_entropy(scores, y).backward()
    optimizer.step()
    return scores.detach()


def test_margins_of_training_and_evaluation(recorded: Recorded) -> None:
    x, y = _data()
    seen: list[torch.Tensor] = []

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True):
            seen.append(_step(model, optimizer, inputs, labels))
        model.eval()
        with torch.no_grad():
            for inputs, _ in DataLoader(TensorDataset(x, y), batch_size=12):
                seen.append(model(inputs))

    run = recorded(script)
    assert [scores.training for scores in run.scores] == [True] * 3 + [False] * 2
    batches = {batch.seq: batch for batch in run.batches}
    for scores, outputs in zip(run.scores, seen, strict=True):
        labels = torch.tensor(scores.labels)
        assert scores.labels == batches[scores.batch].targets
        own = outputs.gather(1, labels[:, None])[:, 0]
        others = outputs.scatter(1, labels[:, None], -torch.inf).max(1).values
        np.testing.assert_allclose(scores.margins, own - others, rtol=1e-5, atol=1e-6)
        assert scores.predicted == tuple(outputs.argmax(1).tolist())


@pytest.mark.parametrize("with_logits", [True, False])
def test_margins_of_two_classes(recorded: Recorded, with_logits: bool) -> None:
    x, y = _data()
    target = (y > 0).float()

    def script() -> None:
        model = nn.Linear(5, 1)
        logits = model(x)[:, 0]
        if with_logits:
            F.binary_cross_entropy_with_logits(logits, target).backward()
        else:
            F.binary_cross_entropy(logits.sigmoid(), target).backward()
        expected.append(logits.detach())

    expected: list[torch.Tensor] = []
    (scores,) = recorded(script).scores
    np.testing.assert_allclose(scores.margins, expected[0] * (2 * target - 1), rtol=1e-3, atol=1e-4)


def test_losses_outside_of_training(recorded: Recorded) -> None:
    x, y = _data()
    values = []

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        _step(model, optimizer, x, y)
        with torch.no_grad():
            values.append(float(F.cross_entropy(model(x), y)))
        model.eval()
        values.append(nn.CrossEntropyLoss()(model(x), y).item())

    run = recorded(script)
    assert [event.value for event in run.events_of("eval_loss")] == pytest.approx(values)


def test_features_of_what_enters_in_training_and_in_evaluation(recorded: Recorded) -> None:
    x, y = _data()

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=24):
            _step(model, optimizer, inputs / 10, labels)
        model.eval()
        model(x)

    run = recorded(script)
    calls = {call.seq: call for call in run.root_calls}
    entered = [stat for stat in run.field_stats if stat.owner == "call"]
    assert [calls[stat.seq].training for stat in entered] == [True, False]
    np.testing.assert_allclose(entered[0].std, (x / 10).std(0, correction=0), rtol=1e-4)
    np.testing.assert_allclose(entered[1].mean, x.mean(0), rtol=1e-4, atol=1e-6)
    given = [stat for stat in run.field_stats if stat.owner == "batch"]
    assert [stat.field for stat in given] == ["0", "1"]
    np.testing.assert_allclose(given[0].mean, x.mean(0), rtol=1e-4, atol=1e-6)


def test_missing_values_are_counted_in_every_batch(recorded: Recorded) -> None:
    x, y = _data(80)
    x[70, 1] = torch.nan
    x[71, :2] = torch.inf

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=8):
            _step(model, optimizer, inputs, labels)

    run = recorded(script)
    assert [batch.position for batch in run.batches if batch.nonfinite] == [8]
    assert run.batches[8].nonfinite == [{"field": "0", "nan": 1, "inf": 2, "samples": 2}]


def test_updates_and_the_weights_they_change(recorded: Recorded) -> None:
    x, y = _data()
    norms = []

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        before = model.weight.detach().clone()
        _step(model, optimizer, x, y)
        norms.extend([float((model.weight.detach() - before).norm()), float(before.norm())])

    stat, _ = recorded(script).stats("update")
    assert [stat.l2, stat.weight_l2] == pytest.approx(norms, rel=1e-5)


def test_units_that_are_dead(recorded: Recorded) -> None:
    x, y = _data()

    def script() -> None:
        model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
        with torch.no_grad():
            model[0].bias[1:] = -100.0
        _step(model, torch.optim.SGD(model.parameters(), lr=0.1), x, y)

    run = recorded(script)
    (first,) = [parameter.id for parameter in run.parameters.values() if parameter.path == "0.weight"]
    (relu,) = [module.id for module in run.modules.values() if module.path == "1"]
    assert run.stats("gradient", first)[0].dead == pytest.approx(0.75)
    assert run.stats("output", relu)[0].dead == pytest.approx(0.75)


def test_weights_that_are_initialised_after_they_were_loaded(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Linear(5, 3)
        model.load_state_dict(nn.Linear(5, 3).state_dict())
        nn.init.xavier_uniform_(model.weight)
        model(torch.randn(4, 5)).sum().backward()

    (event,) = recorded(script).events_of("init_after_load")
    assert event.detail["shape"] == [3, 5]
    assert event.location is not None
    assert str(event.location.source).startswith("nn.init.xavier_uniform_")


def test_evaluation_in_inference_mode_is_judged(recorded: Recorded) -> None:
    x, y = _data()

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=8):
                _step(model, optimizer, inputs, labels)
            model.eval()
            with torch.inference_mode():
                for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=12):
                    F.cross_entropy(model(inputs), labels)
            model.train()

    scores = recorded(script).scores
    assert sum(not one.training for one in scores) == 8
    assert sum(one.training for one in scores) == 12


def test_scores_that_the_script_changes_in_place_are_left_out(recorded: Recorded) -> None:
    x, y = _data()

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            scores = model(x)
            F.cross_entropy(scores, y).backward()
            optimizer.step()
            with torch.no_grad():
                scores.detach().zero_()

    # Margins of zeros are zero; the first batch is judged at once.
    scores = recorded(script).scores
    assert len(scores) == 1
    assert np.any(scores[0].margins != 0)


def test_everything_is_judged_under_autocast(recorded: Recorded) -> None:
    x, y = _data()

    def script() -> None:
        model = nn.Linear(5, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for _ in range(30):
                for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=8):
                    _step(model, optimizer, inputs, labels)
                with torch.no_grad():
                    for inputs, _ in DataLoader(TensorDataset(x, y), batch_size=8):
                        model.eval()(inputs)
                model.train()

    scores = recorded(script).scores
    assert sum(one.training for one in scores) == 90
    assert sum(not one.training for one in scores) == 90


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_binary_targets_in_half_precision_are_judged(recorded: Recorded, dtype: torch.dtype) -> None:
    x, y = torch.randn(8, 5, dtype=dtype), (torch.arange(8) % 2).to(dtype)

    def script() -> None:
        model = nn.Linear(5, 1).to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(x).squeeze(1), y).backward()
            optimizer.step()

    assert [scores.labels for scores in recorded(script).scores] == [(0, 1) * 4] * 3


def test_a_single_score_without_an_axis_does_no_harm(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Linear(5, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(70):
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(model(torch.randn(1, 5)).squeeze(), torch.tensor(1.0)).backward()
            optimizer.step()

    assert len(recorded(script).steps) == 70
