"""Loss calls: what went in, with the sums that tell probabilities from scores."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import batches, small_net, train
from trueline.adapters.pytorch import losses
from trueline.checks import check_of_id, tr_08_accumulation
from trueline.model import MOST_LOSS_CALLS, Conclusion, LossCall
from trueline.store import Run

SCORES = torch.tensor([[2.0, -1.0, 0.5], [0.0, 0.0, 3.0]])


def call_of(run: Run) -> LossCall:
    (call,) = run.loss_calls
    return call


@pytest.mark.parametrize(
    ("given", "row_sum", "logsumexp"),
    [
        (SCORES, [1.5, 3.0], [math.log(math.exp(2) + math.exp(-1) + math.exp(0.5)), math.log(2 + math.exp(3))]),
        (SCORES.softmax(1), [1.0, 1.0], None),
        (SCORES.log_softmax(1), None, [0.0, 0.0]),
    ],
    ids=["scores", "probabilities", "log-probabilities"],
)
def test_row_sums_of_the_input(
    recorded: Recorded, given: Tensor, row_sum: list[float] | None, logsumexp: list[float] | None
) -> None:
    call = call_of(recorded(lambda: F.cross_entropy(given.clone().requires_grad_(), torch.tensor([0, 2]))))
    if row_sum is not None:
        assert call.input["row_sum"] == pytest.approx(row_sum, abs=1e-6)
    if logsumexp is not None:
        assert call.input["row_logsumexp"] == pytest.approx(logsumexp, abs=1e-6)
    assert (call.input["min"], call.input["max"]) == pytest.approx((float(given.min()), float(given.max())))


def test_target_settings_value_and_line(recorded: Recorded) -> None:
    losses = []

    def script() -> None:
        scores = SCORES.clone().requires_grad_()
        losses.append(F.cross_entropy(scores, torch.tensor([0, 2]), torch.ones(3), label_smoothing=0.1, reduction="sum"))

    call = call_of(recorded(script))
    assert call.kind == "cross_entropy"
    assert call.target["distinct"] == 2
    assert (call.target["shape"], call.target["dtype"]) == ([2], "int64")
    assert (call.settings["label_smoothing"], call.settings["reduction"]) == (0.1, "sum")
    assert call.settings["weight"] == "tensor(3,)"
    assert call.value == pytest.approx(losses[0].item())
    assert call.grad
    assert call.input["requires_grad"]
    assert call.location is not None
    assert str(call.location.source).startswith("losses.append(F.cross_entropy")


def test_loss_modules_and_early_imports(recorded: Recorded) -> None:
    def script() -> None:
        from torch.nn.functional import mse_loss

        x = torch.randn(4, 1, requires_grad=True)
        nn.MSELoss()(x, torch.zeros(4, 1))
        nn.BCEWithLogitsLoss()(x, torch.ones(4, 1))
        mse_loss(x, torch.zeros(4, 1))

    assert [call.kind for call in recorded(script).loss_calls] == ["mse_loss", "binary_cross_entropy_with_logits", "mse_loss"]


def test_a_loss_built_on_another_is_one_call(recorded: Recorded) -> None:
    def script() -> None:
        anchor = torch.randn(3, 4, requires_grad=True)
        nn.TripletMarginWithDistanceLoss()(anchor, torch.randn(3, 4), torch.randn(3, 4))

    assert [call.kind for call in recorded(script).loss_calls] == ["triplet_margin_with_distance_loss"]


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("ctc_loss", lambda x: F.ctc_loss(x.reshape(4, 1, 5).log_softmax(2), torch.tensor([[1, 2]]), (4,), (2,))),
        ("cosine_embedding_loss", lambda x: F.cosine_embedding_loss(x, x.detach(), torch.ones(4))),
        ("margin_ranking_loss", lambda x: F.margin_ranking_loss(x, x.detach(), torch.ones(4, 5))),
        ("gaussian_nll_loss", lambda x: F.gaussian_nll_loss(x, torch.zeros(4, 5), torch.ones(4, 5))),
        ("kl_div", lambda x: F.kl_div(x.log_softmax(1), torch.full((4, 5), 0.2), reduction="batchmean", log_target=False)),
        ("multi_margin_loss", lambda x: F.multi_margin_loss(x, torch.tensor([0, 1, 2, 3]))),
        ("huber_loss", lambda x: F.huber_loss(target=torch.zeros(4, 5), input=x)),
    ],
)
def test_every_kind_of_loss_is_recorded(recorded: Recorded, kind: str, make: object) -> None:
    values: list[Tensor] = []

    def script() -> None:
        values.append(make(torch.randn(4, 5, requires_grad=True)))  # type: ignore[operator]

    call = call_of(recorded(script))
    assert call.kind == kind
    assert call.value == pytest.approx(values[0].item())
    assert call.input["shape"]


def test_segmentation_scores_have_their_class_axis_second(recorded: Recorded) -> None:
    probabilities = torch.randn(2, 3, 4, 4).softmax(1)
    call = call_of(recorded(lambda: F.cross_entropy(probabilities.requires_grad_(), torch.zeros(2, 4, 4, dtype=torch.long))))
    assert call.input["row_sum"] == pytest.approx([1.0, 1.0], abs=1e-5)


def test_unbatched_scores(recorded: Recorded) -> None:
    call = call_of(recorded(lambda: F.cross_entropy(torch.randn(5, requires_grad=True), torch.tensor(3))))
    assert call.input["shape"] == [5]


def test_infinite_inputs_do_not_stop_the_recording(recorded: Recorded) -> None:
    def script() -> None:
        x = torch.tensor([[float("nan"), float("inf"), -float("inf")]], requires_grad=True)
        F.cross_entropy(x, torch.tensor([0])).backward()

    run = recorded(script)
    assert call_of(run).kind == "cross_entropy"
    assert len(run.steps) == 1
    assert math.isnan(run.steps[0].loss or 0.0)


def test_losses_of_evaluation_are_left_out(recorded: Recorded) -> None:
    def script() -> None:
        with torch.no_grad():
            F.mse_loss(torch.zeros(3), torch.ones(3))

    assert recorded(script).loss_calls == []


def test_the_steps_loss_is_the_value_of_the_backward_pass(recorded: Recorded) -> None:
    losses: list[float] = []

    def script() -> None:
        model = small_net()
        losses.extend(train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=3))

    run = recorded(script)
    assert [step.loss for step in run.steps] == losses
    assert [event.value for event in run.events_of("backward")] == losses
    assert [call.value for call in run.loss_calls] == pytest.approx(losses)


@pytest.mark.parametrize("most", [MOST_LOSS_CALLS, MOST_LOSS_CALLS // 2])
def test_windows_with_more_passes_than_are_recorded_are_judged(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    for reader in (losses, tr_08_accumulation):
        monkeypatch.setattr(reader, "MOST_LOSS_CALLS", most)

    def script() -> None:
        torch.manual_seed(0)
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for place, (x, y) in enumerate(batches(4 * (most + 2)), 1):
            (F.cross_entropy(model(x), y) / (most + 2)).backward()
            if place % (most + 2) == 0:
                optimizer.step()
                optimizer.zero_grad()

    run = recorded(script)
    assert len([call for call in run.loss_calls if call.step == 0]) == most
    found = check_of_id("tr.08").conclude(run)
    assert found.conclusion is Conclusion.NO_PROBLEM, found
    assert found.summary.startswith(f"{most + 2} passes per step")
