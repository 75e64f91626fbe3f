"""Sampling keeps to its budget, and uses it, on clocks of every speed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.recorder.sampling import FULL_STEPS, Sampling


def is_free(step: int) -> bool:
    """Sampled whatever it costs."""
    return step < FULL_STEPS or step & (step - 1) == 0 or (step - 1) & (step - 2) == 0


class Simulation:
    """Steps of made-up length, recorded with made-up effort."""

    def __init__(self, budget: float, steps: int, *, own: float, always: float, cost: float, jitter: float = 0.0) -> None:
        sampling = Sampling(budget)
        noise = random.Random(7)  # noqa: S311 - a simulation
        self.sampled: list[int] = []
        self.own = 0.0
        self.spent = 0.0
        for step in range(steps):
            sampled = sampling.samples(step)
            factor = 1.0 + jitter * noise.uniform(-1, 1)
            spent = factor * (cost if sampled else always)
            sampling.step_ended(step, seconds=own + spent, spent=spent, sampled=sampled)
            if sampled:
                self.sampled.append(step)
            if step >= FULL_STEPS:
                self.own += own
                self.spent += spent

    @property
    def paid(self) -> list[int]:
        return [step for step in self.sampled if not is_free(step)]

    def free_after_start(self, steps: int) -> int:
        return sum(is_free(step) for step in range(FULL_STEPS, steps))


budgets = st.floats(0.005, 0.5)
own_times = st.floats(1e-5, 2.0)
relative_costs = st.floats(0.01, 200.0)


@given(budgets, own_times, relative_costs, st.floats(0.0, 0.9), st.floats(0.0, 0.5))
@settings(max_examples=80)
def test_spends_no_more_than_the_budget(budget: float, own: float, relative: float, always: float, jitter: float) -> None:
    steps, cost = 700, relative * own
    run = Simulation(budget, steps, own=own, always=min(always * budget * own, cost), cost=cost, jitter=jitter)
    largest = cost * (1 + jitter)
    assert run.spent <= budget * run.own + (run.free_after_start(steps) + 2) * largest + 1e-12


@given(budgets, own_times, relative_costs)
@settings(max_examples=60)
def test_uses_what_it_may_spend(budget: float, own: float, relative: float) -> None:
    steps, cost = 700, relative * own
    run = Simulation(budget, steps, own=own, always=0.0, cost=cost)
    allotted = Sampling(budget).budget * run.own
    all_steps_sampled = cost * (steps - FULL_STEPS)
    slack = cost + 2 * Sampling(budget).budget * own + 1e-12
    assert run.spent >= min(allotted, all_steps_sampled) - slack


@given(budgets, own_times, relative_costs)
@settings(max_examples=30)
def test_first_steps_and_powers_of_two_with_their_successors_are_always_sampled(
    budget: float, own: float, relative: float
) -> None:
    run = Simulation(budget, 300, own=own, always=0.0, cost=relative * own)
    assert set(run.sampled) >= {0, 1, 2, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257}
    assert run.sampled[:FULL_STEPS] == list(range(FULL_STEPS))


def test_long_run_share() -> None:
    """Ten thousand steps of 10 ms with a sample of 30 ms: within 5 % of the time, and not far below it."""
    run = Simulation(0.05, 10_000, own=0.01, always=0.0, cost=0.03)
    assert 0.025 < run.spent / run.own <= 0.05
    assert run.spent / run.own == pytest.approx(Sampling(0.05).budget, rel=0.05)
    assert len(run.sampled) - FULL_STEPS == pytest.approx(run.spent / 0.03)


def test_nothing_is_sampled_on_top_when_the_unavoidable_part_takes_the_budget() -> None:
    run = Simulation(0.05, 3000, own=0.001, always=0.0001, cost=0.002)
    assert run.paid == []
    assert len(run.sampled) == 4 + 2 * len([4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048])


def test_every_step_is_sampled_when_samples_are_cheap() -> None:
    run = Simulation(0.05, 200, own=1.0, always=0.0, cost=0.01)
    assert run.sampled[FULL_STEPS:] == list(range(FULL_STEPS, 200))


def test_no_budget_no_paid_samples() -> None:
    assert Simulation(0.0, 500, own=0.1, always=0.0, cost=0.001).paid == []


def test_slow_start_is_forgotten() -> None:
    """A first sample that cost a thousand times as much (a warm-up) does not stop sampling for good."""
    sampling = Sampling(0.05)
    sampled = []
    for step in range(4000):
        chosen = sampling.samples(step)
        spent = (0.5 if step < FULL_STEPS else 0.0005) if chosen else 0.0
        sampling.step_ended(step, seconds=0.01 + spent, spent=spent, sampled=chosen)
        sampled.append(chosen)
    assert sum(sampled[2000:]) > 500


def test_sketches_are_kept_where_two_runs_meet_whatever_they_cost() -> None:
    one, other = Sampling(0.01), Sampling(0.5)
    kept = [step for step in range(300) if one.with_sketches(step)]
    assert kept == [step for step in range(300) if other.with_sketches(step)] == [0, 1, 2]


def test_gradients_of_consecutive_steps_have_sketches_all_along_the_run() -> None:
    kept = [step for step in range(300) if Sampling(0.01).with_gradient_sketches(step)]
    assert kept == [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257]
