"""Runs of a script in forks of a process that has imported the framework: plain, recorded, and with a watch that fails."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import runpy
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.containment._record import findings, parts_held, parts_read
from benchmarks.containment._watches import OnPurposeError, break_watch, count_calls, load, watches
from trueline.adapters.shared import scores
from trueline.launch import Recording
from trueline.recorder.alignment import Alignment
from trueline.recorder.watches import parts_of
from trueline.store import Run

SCRIPTS = Path(__file__).parent / "scripts"
_LONGEST = 120.0


class Case(msgspec.Struct, frozen=True):
    """A script and how it is recorded. What an aligned run trains with is not the script's own, and neither are its losses."""

    name: str
    framework: str
    script: str
    graph_tensors: bool = False
    aligned: bool = False

    @property
    def is_beside(self) -> bool:
        """Recorded for the watches only that no other case has."""
        return self.graph_tensors or self.aligned


CASES = (
    Case("torch pictures", "pytorch", "torch_pictures"),
    Case("torch sequences", "pytorch", "torch_sequences"),
    Case("torch ranks", "pytorch", "torch_ranks"),
    Case("mindspore pynative", "mindspore", "ms_pynative"),
    Case("mindspore graph", "mindspore", "ms_graph"),
    Case("mindspore jit", "mindspore", "ms_jit"),
    Case("torch pictures, aligned", "pytorch", "torch_pictures", aligned=True),
    Case("torch ranks, aligned", "pytorch", "torch_ranks", aligned=True),
    Case("mindspore pynative, aligned", "mindspore", "ms_pynative", aligned=True),
    Case("mindspore jit, aligned", "mindspore", "ms_jit", aligned=True),
    Case("mindspore graph, with its tensors", "mindspore", "ms_graph", graph_tensors=True),
)


class Outcome(msgspec.Struct):
    """What a script did, and what was recorded of it. `error` is what ended the process."""

    output: str = ""
    weights: str = ""
    errors: str = ""
    error: str | None = None
    steps: int = 0
    failed: list[str] = []
    stopped: str | None = None
    kept: bool = False
    parts: dict[str, str] = {}
    findings: dict[str, dict[str, Any]] = {}
    rests_on: dict[str, list[str]] = {}
    calls: dict[str, int] = {}


def warm(framework: str) -> dict[str, list[Any]]:
    """Import everything once. Nothing is computed, so that no thread runs that a fork would lack."""
    # As many values as come are judged, whatever the time: recordings are to be compared.
    scores._ALLOWANCE = 1e9
    if framework == "pytorch":
        import torch
        import torch._dynamo  # what the first optimizer imports takes longer than a whole script

        torch.set_num_threads(1)
    else:
        import mindspore  # noqa: F401
    load(framework)
    return watches(framework)


def plain(case: Case, folder: Path) -> Outcome:
    return _forked(folder, lambda: _ran(case))


def recorded(
    case: Case, folder: Path, places: list[Any] | None = None, moment: str = "", counted: dict[str, list[Any]] | None = None
) -> Outcome:
    """The script recorded; where `places` are given, with the watch that is called there failing. `counted`: watches whose
    calls are counted."""

    def run() -> Outcome:
        if places is not None:
            break_watch(places, moment)
        calls = {name: count_calls(each) for name, each in (counted or {}).items()}
        os.environ["TRUELINE_RUNS"] = str(folder / "runs")
        recording = Recording(
            "run", ["run"], name="run", budget=1e6, graph_tensors=case.graph_tensors, keep_files=True,
            alignment=Alignment if case.aligned else None,
        )  # fmt: skip
        recording.start()
        try:
            outcome = _ran(case)
        finally:
            recording.stop()
        run = Run(recording.directory)
        outcome.steps, outcome.stopped = len(run.steps), run.info.recorder_error
        outcome.failed = [each.watch for each in run.failed_watches]
        file = recording.directory / "failures.txt"
        outcome.kept = file.is_file() and OnPurposeError.__name__ in file.read_text()
        outcome.parts, outcome.findings = parts_held(run), findings(run)
        outcome.rests_on = parts_read(run) if places is None else {}
        outcome.calls = {name: count() for name, count in calls.items()}
        return outcome

    return _forked(folder, run)


def _ran(case: Case) -> Outcome:
    names = runpy.run_path(str(SCRIPTS / f"{case.script}.py"), run_name="__main__")
    return Outcome(weights=_weights(case.framework, names["model"]))


def _weights(framework: str, model: Any) -> str:
    """The weights, and where all random streams have got to."""
    digest = hashlib.sha256()
    if framework == "pytorch":
        import torch

        tensors = [tensor.numpy() for tensor in model.state_dict().values()]
        digest.update(torch.get_rng_state().numpy().tobytes())
    else:
        tensors = [parameter.asnumpy() for parameter in model.get_parameters()]
    for tensor in tensors:
        digest.update(np.ascontiguousarray(tensor).tobytes())
    digest.update(repr((random.getstate(), np.random.get_state()[1:])).encode())
    return digest.hexdigest()


def _forked(folder: Path, run: Callable[[], Outcome]) -> Outcome:
    """Run it in a process and a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "work").mkdir(parents=True)
    told = folder / "outcome.json"
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _in_child(folder / "work", told, run)
        os._exit(3)
    code = _waited(child)
    outcome = msgspec.json.decode(told.read_bytes(), type=Outcome) if told.is_file() else Outcome(error=code or "nothing told")
    outcome.output, outcome.errors = ((folder / name).read_text(errors="replace") for name in ("out", "err"))
    return outcome


def _in_child(work: Path, told: Path, run: Callable[[], Outcome]) -> None:
    os.chdir(work)
    for name, stream in (("out", 1), ("err", 2)):
        opened = os.open(told.with_name(name), os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, stream)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    # Python seeds it anew in every fork.
    random.seed(0)
    try:
        outcome = run()
    except BaseException as problem:  # noqa: BLE001 - whatever a script dies of is what is asked for
        import traceback

        outcome = Outcome(error=f"{type(problem).__name__}: {problem}\n{traceback.format_exc()}")
    sys.stdout.flush()
    told.write_bytes(json.dumps(msgspec.to_builtins(outcome)).encode())
    os._exit(0)


def _waited(child: int) -> str | None:
    begun = time.monotonic()
    while time.monotonic() - begun < _LONGEST:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return None if status == 0 else f"status {status}"
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"still running after {_LONGEST:.0f} s"


def violations(case: Case, watch: str, alone: Outcome, whole: Outcome, broken: Outcome) -> list[str]:
    """What a failing watch did to the training and to the rest of the record. `alone`: the script under plain python;
    `whole`: recorded without a failure."""
    if broken.error is not None:
        return [f"the script did not end: {broken.error}"]
    wrong = []
    expected = whole if case.aligned else alone
    lacking = set(parts_of(watch))
    unaligned = case.aligned and "alignment" in lacking
    if not unaligned and (broken.output, broken.weights) != (expected.output, expected.weights):
        wrong.append("the script trained otherwise")
    if broken.stopped is not None:
        wrong.append(f"the recording ended: {broken.stopped}")
    if broken.failed != [watch]:
        wrong.append(f"off are {broken.failed}")
    if broken.errors.count(f"trueline: the watch {watch} failed") != 1:
        wrong.append("it was not said once")
    if not broken.kept:
        wrong.append("no traceback was kept")
    if unaligned:
        return wrong
    changed = sorted(part for part in whole.parts if part not in lacking and whole.parts[part] != broken.parts.get(part))
    if changed:
        wrong.append(f"other parts differ: {changed}")
    for item, finding in broken.findings.items():
        if not lacking.isdisjoint(whole.rests_on[item]):
            if finding["conclusion"] != "not_checked" or watch not in finding["summary"]:
                wrong.append(f"{item} rests on it and says {finding['conclusion']}: {finding['summary']}")
        elif finding != whole.findings[item]:
            wrong.append(f"{item} does not rest on it and differs: {whole.findings[item]['summary']} | {finding['summary']}")
    return wrong
