"""The conditions under which a workload is timed: plain, recorded by Trueline, with hand-written hooks, with msprobe.

Each condition trains an instance of the workload of its own, so that what one leaves on a model cannot slow another.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frameworks import Framework

_INSTANCES = itertools.count()


class Condition:
    """One way to run the steps of a workload. `steps` runs one block; what it yields marks the end of a step."""

    def __init__(self, script: Path, folder: Path, framework: Framework) -> None:
        self.folder = folder
        self.framework = framework
        self.start_up = 0.0
        """Seconds that starting took, beyond loading the script."""
        self.load(script)

    def load(self, script: Path) -> None:
        # Under a name of its own that can be imported: a compiler asks for the module of what it compiles.
        name = f"{script.stem}_{next(_INSTANCES)}"
        spec = importlib.util.spec_from_file_location(name, script)
        if spec is None or spec.loader is None:
            raise ImportError(f"{script} cannot be imported: it is no Python file.")
        instance = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(instance)
        self.model = instance.model
        self.train_epoch = instance.train_epoch

    def steps(self) -> Iterator[float]:
        yield from self.train_epoch()

    def enter_block(self) -> None:
        """Switch on what is measured."""

    def leave_block(self) -> None:
        """Switch it off, so that the next block is not touched by it."""

    def close(self) -> None:
        """Finish what is measured after the last block."""


class Plain(Condition):
    """The script as it is."""


class Recorded(Condition):
    """Recorded by Trueline with its defaults, as one run over all blocks."""

    def load(self, script: Path) -> None:
        started = time.perf_counter()
        import trueline

        self.context = trueline.record(name="overhead")
        self.recording: Any = self.context.__enter__()
        self.start_up = time.perf_counter() - started
        super().load(script)
        self.recording.pause()

    def enter_block(self) -> None:
        self.recording.resume()

    def leave_block(self) -> None:
        self.recording.pause()

    def close(self) -> None:
        self.recording.resume()
        self.context.__exit__(None, None, None)


class Hooked(Condition):
    """What people write by hand: a forward hook on every module that takes five numbers of every output, every step."""

    def load(self, script: Path) -> None:
        super().load(script)
        self.values: dict[str, tuple[float, ...]] = {}
        self.handles: list[Any] = []

    def enter_block(self) -> None:
        for name, module in self.framework.modules_of(self.model):
            self.handles.append(module.register_forward_hook(self.hook(name)))

    def leave_block(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def hook(self, name: str) -> Any:
        def measure(_module: Any, _inputs: tuple[Any, ...], output: Any) -> None:
            numbers = self.framework.numbers_of(output)
            if numbers is not None:
                self.values[name] = numbers

        return measure


class Probed(Condition):
    """msprobe with statistics at level L0, called around every step as its documentation shows."""

    def load(self, script: Path) -> None:
        started = time.perf_counter()
        from msprobe.pytorch import PrecisionDebugger

        self.debugger = PrecisionDebugger(task="statistics", level="L0", dump_path=str(self.folder))
        self.start_up = time.perf_counter() - started
        super().load(script)

    def steps(self) -> Iterator[float]:
        epoch = self.train_epoch()
        while True:
            self.debugger.start(model=self.model)
            loss = next(epoch, None)
            self.debugger.stop()
            self.debugger.step()
            if loss is None:
                return
            yield loss


CONDITIONS: dict[str, type[Condition]] = {
    "plain": Plain,
    "trueline": Recorded,
    "hooks": Hooked,
    "msprobe": Probed,
    "plain again": Plain,
}
