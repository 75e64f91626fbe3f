"""`TruelineCallback` records the same run as `trueline run` does."""

from __future__ import annotations

from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn

from trueline.integrations.mindspore import TruelineCallback
from trueline.launch import record
from trueline.store import Run


@pytest.fixture(autouse=True)
def _runs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUELINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("RANK", raising=False)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_seed(0)


def samples() -> ms.dataset.Dataset:
    random = np.random.RandomState(7)
    arrays = random.normal(size=(32, 4)).astype(np.float32), random.randint(0, 3, 32).astype(np.int32)
    return ms.dataset.NumpySlicesDataset(arrays, ["x", "label"], shuffle=False).batch(8)


def model() -> ms.train.Model:
    network = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 3))
    optimizer = nn.Momentum(network.trainable_params(), 0.1, 0.9)
    return ms.train.Model(network, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})


def test_the_run_is_that_of_the_recorder() -> None:
    callback = TruelineCallback(name="callback")
    model().train(1, samples(), callbacks=[callback], dataset_sink_mode=False)
    ms.set_seed(0)
    with record(name="recorder") as recording:
        model().train(1, samples(), dataset_sink_mode=False)
    assert callback.directory is not None
    mine, theirs = Run(callback.directory), Run(recording.directory)
    assert mine.info.status == "finished"
    assert [step.loss for step in mine.steps] == [step.loss for step in theirs.steps]
    assert [event.kind for event in mine.events] == [event.kind for event in theirs.events]
    assert [(op.name, op.module) for op in mine.ops] == [(op.name, op.module) for op in theirs.ops]
    assert mine.loaders.keys() == theirs.loaders.keys()
    mine.close()
    theirs.close()


def test_fit_with_its_evaluations_is_one_run() -> None:
    callback = TruelineCallback(name="fit")
    model().fit(2, samples(), samples(), callbacks=[callback])
    assert callback.directory is not None
    run = Run(callback.directory)
    assert len(run.steps) == 8
    assert {call.grad for call in run.root_calls} == {True, False}
    run.close()


def test_a_training_that_fails_is_a_run_that_failed() -> None:
    class Stop(ms.train.Callback):  # type: ignore[misc]
        def on_train_step_end(self, run_context: object) -> None:  # noqa: ARG002
            raise ValueError("enough")

    callback = TruelineCallback(name="failing")
    with pytest.raises(ValueError, match="enough"):
        model().train(1, samples(), callbacks=[callback, Stop()], dataset_sink_mode=False)
    assert callback.directory is not None
    run = Run(callback.directory)
    assert (run.info.status, run.info.error) == ("failed", "ValueError: enough")
    run.close()


def test_a_script_that_is_recorded_already_is_not_recorded_twice() -> None:
    with record(name="outer") as recording:
        callback = TruelineCallback(name="inner")
        model().train(1, samples(), callbacks=[callback], dataset_sink_mode=False)
    assert callback.directory is None
    run = Run(recording.directory)
    assert len(run.steps) == 4
    run.close()


def test_a_callback_that_never_trains_makes_way_for_the_next() -> None:
    idle, callback = TruelineCallback(name="idle"), TruelineCallback(name="next")
    model().train(1, samples(), callbacks=[callback], dataset_sink_mode=False)
    assert idle.directory is not None
    assert callback.directory is not None
    runs = Run(idle.directory), Run(callback.directory)
    assert [(run.info.status, len(run.steps)) for run in runs] == [("interrupted", 0), ("finished", 4)]
    for run in runs:
        run.close()


def test_a_callback_records_once(capsys: pytest.CaptureFixture[str]) -> None:
    callback, trained = TruelineCallback(name="once"), model()
    trained.train(1, samples(), callbacks=[callback], dataset_sink_mode=False)
    trained.train(1, samples(), callbacks=[callback], dataset_sink_mode=False)
    assert "Make a TruelineCallback for each" in capsys.readouterr().err
