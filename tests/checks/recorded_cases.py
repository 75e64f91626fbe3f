"""Recordings of case scripts, kept from one run of the tests to the next.

A recording depends on the script, on the half of Trueline that records, and on the frameworks. Where none of these has
changed, the checks read the recording that is there. `make clean` removes them all.
"""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import xxhash

from tests.architecture.sources import PACKAGE, ROOT
from tests.architecture.test_layers import LAYERS

KEPT = ROOT / ".trueline" / "cases"
# Layers above this one only read what was recorded.
_RECORDING = {*LAYERS[: LAYERS.index("launch") + 1], "cli/run.py", "cli/main.py"}
_FRAMEWORKS = ("torch", "mindspore", "numpy", "scikit-learn", "lightning", "transformers")


def recorded(script: Path, record: Callable[[Path], None]) -> Path:
    """The directory of the script's run. `record` makes it in a folder of runs that it is given."""
    folder = KEPT / script.parent.name / script.stem
    kept = folder / _digest(script)
    if not kept.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as new:
            runs = Path(new, "runs")
            record(runs)
            (directory,) = [path for path in runs.iterdir() if path.is_dir()]
            _keep(directory, kept)
    return kept


def _keep(directory: Path, kept: Path) -> None:
    """In the place of the recordings of other versions, unless another process has made the same meanwhile."""
    for old in kept.parent.iterdir():
        if not old.name.startswith("new-") and old != kept:
            shutil.rmtree(old, ignore_errors=True)
    try:
        directory.rename(kept)
    except OSError:
        if not kept.is_dir():
            raise


def _digest(script: Path) -> str:
    digest = xxhash.xxh3_128(_digest_of_recorder())
    digest.update(str(script).encode())
    digest.update(script.read_bytes())
    return digest.hexdigest()


def records(source: Path) -> bool:
    """Whether this file of Trueline can change what is recorded."""
    inside = source.relative_to(PACKAGE)
    layer = inside.parts[0].removesuffix(".py")
    return layer in _RECORDING or inside.as_posix() in _RECORDING


@cache
def _digest_of_recorder() -> bytes:
    digest = xxhash.xxh3_128(platform.python_version().encode())
    for path in sorted(PACKAGE.rglob("*.py")):
        if records(path):
            digest.update(path.read_bytes())
    for name in _FRAMEWORKS:
        digest.update(importlib.metadata.version(name).encode())
    return digest.digest()
