"""Small real run directories, written with the store's own writer: what reports, rankings and commands are tested on."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from trueline.model import RunInfo
from trueline.store import FORMAT, Writer, write_info

Row = tuple[Any, ...]


def run_info(name: str, **changes: Any) -> RunInfo:
    """The description of a finished run."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "command": ["train.py", "--lr", "0.1"],
        "cwd": "/home/someone/project",
        "started": "2026-01-02T03:04:05",
        "pid": os.getpid(),
        "python": "3.11.9",
        "trueline": "0.1.0",
        "script": "train.py",
        "status": "finished",
        "ended": "2026-01-02T03:04:09",
        "exit_code": 0,
        "frameworks": {"torch": "2.13.0"},
        "platform": "Linux",
        "seconds": 4.0,
    }
    return RunInfo(**{**values, **changes})


def build_run(
    directory: Path, losses: Sequence[float | None] = (), *, rows: dict[str, list[Row]] | None = None, **info: Any
) -> Path:
    """Write a run of one small model (`net`: fc1, act, fc2) trained with SGD, with one step per loss.

    `rows` are added table by table, as in schema.sql; `info` changes fields of run.json.
    """
    directory.mkdir(parents=True, exist_ok=True)
    write_info(directory, run_info(directory.name, **info))
    writer = Writer(directory, 0)
    writer.commit(_model_rows())
    writer.commit({"step": [_step_row(number, loss) for number, loss in enumerate(losses)]})
    writer.commit({"event": [_backward_row(number, loss) for number, loss in enumerate(losses)]})
    if losses:
        writer.commit({"tensor_stat": _stat_rows(0)})
    writer.commit({"meta": [("ended", "true")]})
    writer.commit(rows or {})
    writer.close()
    return directory


def trueline(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own, with its runs under `cwd`."""
    kept = {key: value for key, value in os.environ.items() if key not in {"TRUELINE_RUNS", "COLUMNS", "FORCE_COLOR"}}
    return subprocess.run(
        [sys.executable, "-m", "trueline", *words],
        cwd=cwd,
        env={**kept, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def stat_row(step: int, role: str, subject: int, *, nan: int = 0, inf: int = 0, shape: Sequence[int] = (32, 64)) -> Row:
    """A row of `tensor_stat` with plausible values."""
    sketch = np.zeros(64, "<f4").tobytes()
    return (
        step, role, subject, 0, json.dumps(list(shape)), "float32",
        -1.5, 2.5, 0.1, 0.9, 3.0, 0.7, 0.25, nan, inf, sketch, None, None,
    )  # fmt: skip


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process can grow past this, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _finite(loss: float | None) -> bool:
    return loss is None or math.isfinite(loss)


def _step_row(number: int, loss: float | None) -> Row:
    kept = "nan" if loss is not None and math.isnan(loss) else loss
    return (number, number * 10 + 9, 1, kept, 0.5, int(_finite(loss)), 0.01, 0.001, int(number == 0), 1, None, 4, 0)


def _backward_row(number: int, loss: float | None) -> Row:
    return (number * 10 + 5, number, "backward", None, 3, loss, "{}")


def _model_rows() -> dict[str, list[Row]]:
    return {
        "meta": [("framework", "torch")],
        "location": [
            (1, "train.py", 10, "forward", "x = self.fc1(x)"),
            (2, "train.py", 12, "forward", "return self.fc2(x)"),
            (3, "train.py", 42, "<module>", "loss.backward()"),
            (4, "train.py", 30, "<module>", "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)"),
            (5, "train.py", 25, "<module>", "loader = DataLoader(data, batch_size=32)"),
            (6, "train.py", 43, "<module>", "optimizer.step()"),
        ],
        "module": [
            (1, 1, "", "net", "Net", "container", None, 4, 3, "{}"),
            (2, 1, "fc1", "net", "Linear", "linear", None, None, 1, '{"in_features": 64, "out_features": 32}'),
            (3, 1, "act", "net", "ReLU", "activation", None, None, 1, "{}"),
            (4, 1, "fc2", "net", "Linear", "linear", None, None, 2, '{"in_features": 32, "out_features": 10}'),
        ],
        "parameter": [
            (1, 1, 2, "fc1.weight", "[32, 64]", "float32", 1, 0, None, None, None),
            (2, 1, 2, "fc1.bias", "[32]", "float32", 1, 0, None, None, None),
            (3, 1, 4, "fc2.weight", "[10, 32]", "float32", 1, 0, None, None, None),
            (4, 1, 4, "fc2.bias", "[10]", "float32", 1, 0, None, None, None),
        ],
        "optimizer": [(1, "SGD", 4)],
        "hyperparameter": [
            (0, 1, 0, "lr", "0.1"),
            (0, 1, 0, "momentum", "0.9"),
            (2, 1, 0, "lr", "0.05"),
        ],
        "loader": [(1, "TensorDataset", 1797, 32, "SequentialSampler", 5, '{"num_workers": 0, "drop_last": false}')],
    }  # fmt: skip


def _stat_rows(step: int) -> list[Row]:
    outputs = [stat_row(step, "output", module) for module in (2, 3, 4, 1)]
    gradients = [stat_row(step, "gradient", parameter) for parameter in (1, 2, 3, 4)]
    return outputs + gradients
