"""MindSpore, watched: one file per thing that is seen."""

from __future__ import annotations

import mindspore
from mindspore.graph._parse import parser

from trueline.adapters.base import Watch, installed
from trueline.adapters.mindspore.backward import BackwardWatch
from trueline.adapters.mindspore.checkpoint import LoadWatch
from trueline.adapters.mindspore.clipping import ClipWatch
from trueline.adapters.mindspore.collectives import CollectiveWatch
from trueline.adapters.mindspore.compiled.graph_tensors import GraphTensors
from trueline.adapters.mindspore.compiled.graphs import CompiledGraphs
from trueline.adapters.mindspore.compiled.ir_files import remove
from trueline.adapters.mindspore.compiled.steps import CompiledWatch
from trueline.adapters.mindspore.data import BatchWatch
from trueline.adapters.mindspore.ending import end_quietly
from trueline.adapters.mindspore.graph import OpTrace
from trueline.adapters.mindspore.hooks import ModuleWatch
from trueline.adapters.mindspore.losses import LossWatch
from trueline.adapters.mindspore.noise import NoiseWatch
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.precision import ScalerWatch
from trueline.adapters.mindspore.pynative import force_pynative
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.rng import SeedWatch
from trueline.adapters.mindspore.saving import SaveWatch
from trueline.adapters.mindspore.schedulers import ScheduleWatch
from trueline.adapters.mindspore.scores import ScoreWatch
from trueline.adapters.shared.steps import StepProgress
from trueline.output import warn
from trueline.recorder import Recorder, to_json
from trueline.recorder.patches import Patches

_WAYS = {
    "eager": "in PyNative mode: every cell, and the operations of the first steps",
    "forced": "in PyNative mode instead of graph mode, to see every cell, and the operations of the first steps",
    "compiled": "compiled graphs step by step, with the operations that the compiler tells of; the tensors and gradients inside "
    "of them are not seen. All of it: trueline run --pynative; in graph mode, trueline run --graph-tensors",
    "tapped": "compiled graphs step by step, with the operations that the compiler tells of, and the outputs and gradients of "
    "their cells, shown by operators that are put into the graphs of training steps",
}


class MindSporeAdapter:
    """Installs and removes all watches of this framework as one."""

    name = "mindspore"
    version = str(mindspore.__version__)

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._patches = Patches()
        self._ways: set[str] = set()
        self._registry = Registry(recorder)
        self._trace = OpTrace(recorder, self._registry)
        batches = self._batches = BatchWatch(recorder, self._registry)
        scores = self._scores = ScoreWatch(recorder, batches)
        progress = StepProgress(recorder)
        self._optimizers = OptimizerWatch(recorder, self._registry, self._trace, progress)
        self._backward = BackwardWatch(recorder, self._registry, self._trace, progress, self._optimizers)
        losses = LossWatch(recorder, batches, self._trace, scores)
        scalers = ScalerWatch(recorder, self._optimizers, self._trace, progress)
        graphs = CompiledGraphs(recorder, self._registry, self._optimizers)
        taps = GraphTensors(recorder, self._registry, self._announce_refused)
        collectives = CollectiveWatch(recorder, self._registry, self._optimizers)
        compiled = CompiledWatch(
            recorder, graphs, taps, self._optimizers, losses, scores, scalers, collectives, progress, self._announce
        )
        taps.is_differentiated = compiled.is_differentiated = lambda: self._backward.depth > 0
        self._backward.on_over.append(compiled.backward_over)
        clips = ClipWatch(recorder, self._optimizers, progress)
        cells = ModuleWatch(
            recorder, self._registry, batches, scores, self._trace, progress, self._backward, self._optimizers, losses, compiled,
            scalers, clips, collectives,
        )  # fmt: skip
        self._watches: list[Watch] = [
            cells, batches, self._optimizers, self._backward, compiled, LoadWatch(recorder, self._registry), SeedWatch(recorder),
            SaveWatch(recorder), NoiseWatch(recorder), ScheduleWatch(recorder, self._registry, self._optimizers), collectives,
        ]  # fmt: skip
        self._visible = (cells, losses, clips, scalers, collectives)
        progress.on_first_end.append(lambda: self._announce("eager"))

    def install(self) -> None:
        end_quietly()
        if self.recorder.eager:
            force_pynative(self._patches, lambda: self._announce("forced"))
        for watch in self._watches:
            installed(watch, self._patches)
        # Functions that compiled code may call: the compiler is told what they stand for, and never sees ours.
        visible = Patches()
        for watch in self._visible:
            installed(watch, visible, visible=True)
        for wrapper, original in visible.replacements():
            parser.convert_object_map[wrapper] = parser.convert_object_map.get(original, original)
        self._patches.join(visible)
        self._patches.rebind_early_imports()

    def uninstall(self) -> None:
        self._trace.end()
        for wrapper, _ in self._patches.replacements():
            parser.convert_object_map.pop(wrapper, None)
        self._patches.undo()
        # What was written for a call that failed is still there.
        remove(self.recorder.scratch)

    def finish(self, *, completed: bool) -> None:
        if not self.recorder.active:
            return
        if completed:
            self._backward.finish()
        self._optimizers.finish()
        self._registry.finish()
        self._scores.finish()
        self._batches.samples.finish()

    def _announce(self, way: str) -> None:
        """Say on stderr, once, in which way the run is recorded, and note it in the run."""
        if self._ways and (way in self._ways or way == "eager"):
            return
        self._ways.add(way)
        self.recorder.row("meta", ("recorded", to_json(sorted(self._ways))))
        warn(f"recording MindSpore {self.version} {_WAYS[way]}.")

    def _announce_refused(self, reason: str) -> None:
        """Say that a graph is recorded in another way than was asked for."""
        self._ways.add("compiled")
        self.recorder.row("meta", ("recorded", to_json(sorted(self._ways))))
        warn(
            "a graph does not compile with the operators that --graph-tensors puts in. It runs as the script has it, "
            f"and its outputs and gradients are not recorded: {reason[:200]}"
        )


ADAPTER = MindSporeAdapter
