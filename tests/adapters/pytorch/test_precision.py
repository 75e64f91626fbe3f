"""Clipping, and gradient scaling: what happened, and in which order."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.nn.utils import clip_grad_norm_

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import batches, small_net
from trueline.store import Run

ORDER = ("scale", "backward", "unscale", "clip", "scaler_step", "optimizer_step", "scaler_update")


def order_of(run: Run, step: int) -> list[str]:
    return [event.kind for event in run.events if event.step == step and event.kind in ORDER]


def test_clip_events(recorded: Recorded) -> None:
    norms: list[float] = []

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 0.01)))
            torch.nn.utils.clip_grad_value_(model.parameters(), clip_value=0.5)
            clip_grad_norm_(list(model.parameters()), max_norm=3.0)
            optimizer.step()

    run = recorded(script)
    clips = run.events_of("clip")
    assert [(clip.detail["kind"], clip.detail["limit"]) for clip in clips] == [("norm", 0.01), ("value", 0.5), ("norm", 3.0)] * 2
    assert [clip.value for clip in clips[::3]] == pytest.approx(norms)
    assert all(clip.location is not None and "clip" in str(clip.location.source) for clip in clips)
    assert [step.grad_norm for step in run.steps] == pytest.approx([0.01, 0.01], rel=1e-3)
    assert [event.detail for event in run.events_of("optimizer_step")] == [{}, {}]


def test_gradients_that_change_after_clipping(recorded: Recorded) -> None:
    """Clipped while still scaled, unscaled afterwards: the step uses another norm than the clip left."""

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for x, y in batches(2):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(x), y)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()

    run = recorded(script)
    assert order_of(run, 0) == ["scale", "backward", "clip", "scaler_step", "optimizer_step"]
    detail = run.events_of("optimizer_step")[0].detail
    assert detail["clipped_norm"] == pytest.approx(1.0)
    assert detail["norm"] == pytest.approx(1 / 1024, rel=1e-2)


def test_order_of_a_scaled_step(recorded: Recorded) -> None:
    losses: list[float] = []

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        for x, y in batches(2):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())

    run = recorded(script)
    assert order_of(run, 0) == ["scale", "backward", "unscale", "clip", "scaler_step", "optimizer_step"]
    # The update comes after the optimizer's step, which ended step 0.
    assert order_of(run, 1)[0] == "scaler_update"
    assert [event.value for event in run.events_of("scale")] == [256.0, 256.0]
    assert [event.subject for event in run.events_of("unscale", "scaler_step")] == [1] * 4
    assert [step.loss for step in run.steps] == losses, "the loss is told unscaled"
    assert [step.optimizer for step in run.steps] == [1, 1]


def test_a_step_skipped_by_the_scaler_ends_the_step(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        for number, (x, y) in enumerate(batches(3)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss * math.inf if number == 1 else loss).backward()
            scaler.step(optimizer)
            scaler.update()

    run = recorded(script)
    assert len(run.steps) == 3
    assert [bool(event.detail.get("skipped")) for event in run.events_of("optimizer_step")] == [False, True, False]
    assert [event.value for event in run.events_of("scaler_update")] == [256.0, 128.0, 128.0]
    assert [step.finite for step in run.steps] == [True, False, True]
    assert all(held.steps == 2 for held in run.optimizer_parameters)
    assert [step.backwards for step in run.steps] == [1, 1, 1]
    assert [step.cleared for step in run.steps] == [None, True, True]


def test_infinite_gradients_of_a_finite_loss(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
        for _ in range(2):
            optimizer.zero_grad()
            scaler.scale(model(torch.full((1, 2), 1e6)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

    run = recorded(script)
    assert len(run.steps) == 2
    assert [bool(event.detail.get("skipped")) for event in run.events_of("optimizer_step")] == [True, True]


def test_two_optimizers_with_one_scaler(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizers = [torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.SGD(model[2].parameters(), lr=0.1)]
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for x, y in batches(2):
            for optimizer in optimizers:
                optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(x), y)).backward()
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update()

    run = recorded(script)
    assert [step.optimizer for step in run.steps] == [1, 2, 1, 2]
    assert len(run.events_of("scaler_update")) == 2


def test_a_disabled_scaler_leaves_nothing(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=False)
        for x, y in batches(2):
            optimizer.zero_grad()
            scaler.scale(F.cross_entropy(model(x), y)).backward()
            scaler.step(optimizer)
            scaler.update()

    run = recorded(script)
    assert run.events_of("scale", "unscale", "scaler_step", "scaler_update") == []
    assert len(run.steps) == 2


def test_autocast_shows_in_the_dtypes(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(2):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()

    run = recorded(script)
    assert {stat.dtype for stat in run.stats("output")} == {"bfloat16"}
    assert {stat.dtype for stat in run.stats("gradient")} == {"float32"}
