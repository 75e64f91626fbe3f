"""The recorder: steps with their numbers, sampling, and failures that never reach the script."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import largest_file, run_info
from hypothesis import given
from hypothesis import strategies as st

from trueline.model import Step
from trueline.recorder import Recorder, to_json
from trueline.store import FORMAT, Run, StoredTensor, Writer, read_tensors, write_info, write_tensors

Make = Callable[..., Recorder]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """`make(**settings)`: a started recorder that writes to `tmp_path`."""
    write_info(tmp_path, run_info("run"))
    made: list[Recorder] = []

    def of(budget: float = 0.0, **settings: Any) -> Recorder:
        recorder = Recorder(lambda: Writer(tmp_path, 0), str(tmp_path), budget, **settings)
        recorder.start(framework="none")
        made.append(recorder)
        return recorder

    yield of
    for recorder in made:
        recorder.close()


def end_step(recorder: Recorder, loss: Any = 1.0, grad_norm: Any = 1.0, cleared: bool | None = None) -> bool:
    """End a step; returns whether it was sampled."""
    sampled = recorder.sampled
    recorder.end_step(
        seq=recorder.next_seq(), optimizer=1, loss=loss, grad_norm=grad_norm, backwards=1, cleared=cleared,
        with_gradient=2, without_gradient=0,
    )  # fmt: skip
    return sampled


def steps_in(directory: Path) -> list[Step]:
    run = Run(directory)
    steps = run.steps
    run.close()
    return steps


class DeviceScalar:
    """A number that is still being computed: reading it waits for the device."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.read = False

    def __float__(self) -> float:
        self.read = True
        return self.value


class BrokenScalar:
    def __float__(self) -> float:
        raise RuntimeError("CUDA error: device-side assert triggered")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 0.0, 1e308, None])
def test_numbers_of_a_step_come_back_as_they_were(make: Make, tmp_path: Path, number: float | None) -> None:
    recorder = make()
    end_step(recorder, loss=number, grad_norm=1.0, cleared=True)
    end_step(recorder, loss=1.0, grad_norm=number, cleared=False)
    recorder.close()
    one, other = steps_in(tmp_path)
    for found in (one.loss, other.grad_norm):
        assert found == number or (number is not None and found is not None and math.isnan(number) and math.isnan(found))
    finite = number is None or math.isfinite(number)
    assert (one.finite, other.finite) == (finite, finite)
    assert (one.cleared, other.cleared) == (True, False)


def test_steps_are_readable_as_soon_as_they_end(make: Make, tmp_path: Path) -> None:
    recorder = make()
    for count in range(1, 4):
        end_step(recorder)
        assert len(steps_in(tmp_path)) == count


def test_device_scalars_are_read_one_step_later(make: Make, tmp_path: Path) -> None:
    recorder = make()
    scalars = [DeviceScalar(0.5), DeviceScalar(math.nan)]
    for number, scalar in enumerate(scalars):
        end_step(recorder, loss=scalar)
        assert not scalar.read
        # Killed here, the step would be there all the same.
        assert len(steps_in(tmp_path)) == number + 1
        assert steps_in(tmp_path)[number].loss is None
    end_step(recorder, loss=2.0)
    assert all(scalar.read for scalar in scalars)
    recorder.close()
    losses = [step.loss for step in steps_in(tmp_path)]
    assert losses[0] == 0.5
    assert losses[1] is not None
    assert math.isnan(losses[1])
    assert losses[2] == 2.0


def test_the_last_device_scalar_is_read_at_the_end(make: Make, tmp_path: Path) -> None:
    recorder = make()
    end_step(recorder, loss=DeviceScalar(0.25), grad_norm=DeviceScalar(math.inf))
    recorder.close()
    assert [(step.loss, step.grad_norm, step.finite) for step in steps_in(tmp_path)] == [(0.25, math.inf, False)]


def test_a_device_that_died_does_not_spoil_the_end(make: Make, tmp_path: Path) -> None:
    recorder = make()
    end_step(recorder, loss=0.5)
    end_step(recorder, loss=BrokenScalar())
    recorder.close()
    assert recorder.failure is not None
    assert "device-side assert" in recorder.failure
    assert [step.loss for step in steps_in(tmp_path)] == [0.5, None]


def test_steps_after_the_first_non_finite_one_are_sampled(make: Make) -> None:
    recorder = make(budget=0.0)
    for _ in range(10):
        end_step(recorder)
    assert not recorder.sampled
    end_step(recorder, loss=math.nan)
    assert [end_step(recorder, loss=math.nan) for _ in range(4)] == [True, True, False, False]


def test_a_non_finite_device_scalar_is_urgent_as_soon_as_it_is_known(make: Make) -> None:
    recorder = make(budget=0.0)
    for _ in range(10):
        end_step(recorder)
    end_step(recorder, grad_norm=DeviceScalar(math.inf))
    assert [end_step(recorder) for _ in range(4)] == [False, True, True, False]


def test_steps_whose_tensors_are_wanted_are_sampled_and_kept(make: Make, tmp_path: Path) -> None:
    recorder = make(kept_steps=frozenset({5}), keep_tensors=lambda step, tensors: write_tensors(tmp_path, step, 0, tensors))
    for step in range(7):
        assert recorder.keeps_tensors == (step == 5)
        if recorder.keeps_tensors:
            assert recorder.sampled
            recorder.keep_tensor("output/fc/0", StoredTensor("float32", (2,), np.array([1, 2], "<f4").view(np.uint8)))
        end_step(recorder)
    assert read_tensors(tmp_path, 5)["output/fc/0"].tolist() == [1.0, 2.0]
    assert [path.name for path in (tmp_path / "tensors").iterdir()] == ["step5-rank0.safetensors"]


def test_tensors_that_cannot_be_kept_stop_the_recording_only(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    def full_disk(step: int, tensors: dict[str, StoredTensor]) -> None:
        raise OSError(28, f"No space left on device ({step}, {len(tensors)})")

    recorder = make(kept_steps=frozenset({0}), keep_tensors=full_disk)
    recorder.keep_tensor("output/fc/0", StoredTensor("float32", (0,), np.zeros(0, np.uint8)))
    end_step(recorder)
    assert not recorder.active
    assert "No space left" in capsys.readouterr().err


def test_a_writer_that_fails_is_reported_once(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = make()
    end_step(recorder)
    # No file of this process may grow from here on: a real failure of a real store.
    with largest_file((tmp_path / "rank0.journal").stat().st_size + 10):
        for _ in range(3):
            end_step(recorder)
    recorder.event("seed")
    recorder.close()
    errors = capsys.readouterr().err
    assert errors.count("trueline:") == errors.count("\n") == 1
    assert "recording stopped at step 1" in errors
    assert not recorder.active
    assert recorder.failure is not None
    assert recorder.failure.startswith("OSError")
    assert "disk is probably full" in recorder.failure
    assert [step.id for step in steps_in(tmp_path)] == [0]


def test_a_store_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(lambda: Writer(tmp_path / "missing", 0), str(tmp_path), 0.05)
    recorder.start(framework="none")
    recorder.start(framework="another")
    end_step(recorder)
    recorder.close()
    assert not recorder.active
    assert capsys.readouterr().err.count("trueline:") == 1


def test_a_value_that_cannot_be_stored_loses_no_earlier_step(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = make()
    end_step(recorder)
    recorder.row("meta", ("key", object()))
    end_step(recorder)
    recorder.close()
    assert "recording stopped at step 1" in capsys.readouterr().err
    assert [step.id for step in steps_in(tmp_path)] == [0]


def test_inactive_before_the_start_and_after_the_end(make: Make, tmp_path: Path) -> None:
    early = Recorder(lambda: Writer(tmp_path, 7), str(tmp_path), 0.05)
    assert not early.active
    early.close()
    assert not list(tmp_path.glob("rank7.*"))
    recorder = make()
    assert recorder.active
    recorder.close()
    recorder.close()
    assert not recorder.active


def test_a_run_that_ended_says_so(make: Make, tmp_path: Path) -> None:
    recorder = make()
    recorder.close()
    run = Run(tmp_path)
    assert run.meta == {"format": str(FORMAT), "framework": "none", "ended": "true"}
    run.close()


def test_events_have_their_lines_order_and_steps(make: Make, tmp_path: Path) -> None:
    recorder = make()

    def seeded() -> int:
        """As a method of a watch does it, called by the function that stands in for the user's."""
        return recorder.event("seed", location=recorder.location(), detail={"seed": 1})

    def watched_seed() -> int:
        return seeded()

    first = watched_seed()
    end_step(recorder)
    second = recorder.event("printed", value=2.0, subject=3)
    recorder.close()
    run = Run(tmp_path)
    one, other = run.events
    run.close()
    assert (one.seq, one.step, one.kind, one.detail) == (first, 0, "seed", {"seed": 1})
    assert one.location is not None
    assert one.location.source == "first = watched_seed()"
    assert (other.seq, other.step, other.value, other.subject, other.location, other.detail) == (second, 1, 2.0, 3, None, {})
    assert first < second


def test_time_between_pause_and_resume_belongs_to_no_step(make: Make, tmp_path: Path) -> None:
    recorder = make()
    end_step(recorder)
    recorder._step_started -= 3600.0
    recorder.wait = 5.0
    recorder.resume()
    end_step(recorder)
    recorder.close()
    last = steps_in(tmp_path)[-1]
    assert last.seconds < 60.0
    assert last.wait == 0.0


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_json_of_every_plain_value_can_be_stored(value: Any) -> None:
    text = to_json(value)
    text.encode()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_json_of_other_values() -> None:
    assert to_json({"a": math.nan, "b": [math.inf, 1.5], "c": Path("x"), "d": (1, "\udce9")}) == (
        '{"a":null,"b":[null,1.5],"c":"x","d":[1,"?"]}'
    )
