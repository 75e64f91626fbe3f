"""The conditions under which a workload is timed: plain, recorded by Trueline, with hand-written hooks, with msprobe.

Each condition trains an instance of the workload of its own, so that what one leaves on a model cannot slow another.
"""

from __future__ import annotations

import runpy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch


class Condition:
    """One way to run the steps of a workload. `steps` runs one block; what it yields marks the end of a step."""

    def __init__(self, script: Path, folder: Path) -> None:
        self.folder = folder
        self.start_up = 0.0
        """Seconds that starting took, beyond loading the script."""
        self.load(script)

    def load(self, script: Path) -> None:
        namespace = runpy.run_path(str(script))
        self.model: torch.nn.Module = namespace["model"]
        self.train_epoch = namespace["train_epoch"]

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

    def __init__(self, script: Path, folder: Path) -> None:
        super().__init__(script, folder)
        self.values: dict[str, tuple[float, ...]] = {}
        self.handles: list[torch.utils.hooks.RemovableHandle] = []

    def enter_block(self) -> None:
        for name, module in self.model.named_modules():
            self.handles.append(module.register_forward_hook(self.hook(name)))

    def leave_block(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()

    def hook(self, name: str) -> Any:
        def measure(_module: torch.nn.Module, _inputs: tuple[Any, ...], output: Any) -> None:
            if isinstance(output, torch.Tensor):
                with torch.no_grad():
                    self.values[name] = (
                        output.min().item(),
                        output.max().item(),
                        output.mean().item(),
                        output.norm().item(),
                        torch.isnan(output).sum().item(),
                    )

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
