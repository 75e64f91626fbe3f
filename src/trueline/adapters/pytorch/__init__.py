"""PyTorch, watched: one file per thing that is seen."""

from __future__ import annotations

import torch

from trueline.adapters.base import Watch, installed
from trueline.adapters.pytorch.backward import BackwardWatch
from trueline.adapters.pytorch.checkpoint import LoadWatch
from trueline.adapters.pytorch.clipping import ClipWatch
from trueline.adapters.pytorch.collectives import CollectiveWatch
from trueline.adapters.pytorch.data import BatchWatch
from trueline.adapters.pytorch.graph import OpTrace
from trueline.adapters.pytorch.hooks import ModuleWatch
from trueline.adapters.pytorch.losses import LossWatch
from trueline.adapters.pytorch.noise import NoiseWatch
from trueline.adapters.pytorch.optimizer import OptimizerWatch
from trueline.adapters.pytorch.precision import ScalerWatch
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.rng import SeedWatch
from trueline.adapters.pytorch.saving import SaveWatch
from trueline.adapters.pytorch.schedulers import ScheduleWatch
from trueline.adapters.pytorch.scores import ScoreWatch
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches


class PyTorchAdapter:
    """Installs and removes all watches of this framework as one."""

    name = "pytorch"
    version = str(torch.__version__)

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._patches = Patches()
        self._registry = Registry(recorder)
        self._trace = OpTrace(recorder, self._registry)
        batches = self._batches = BatchWatch(recorder, self._registry)
        scores = self._scores = ScoreWatch(recorder, batches)
        progress = StepProgress(recorder)
        self._optimizers = OptimizerWatch(recorder, self._registry, self._trace, progress)
        self._loads = LoadWatch(recorder, self._registry)
        self._backward = BackwardWatch(recorder, self._registry, self._trace, progress, self._optimizers)
        self._watches: list[Watch] = [
            ModuleWatch(recorder, self._registry, batches, scores, self._trace, progress),
            batches,
            LossWatch(recorder, batches, self._trace, scores),
            self._optimizers,
            self._backward,
            ClipWatch(recorder, progress),
            ScheduleWatch(recorder, self._optimizers),
            ScalerWatch(recorder, self._optimizers, progress),
            self._loads,
            SeedWatch(recorder),
            NoiseWatch(recorder),
            CollectiveWatch(recorder, self._registry),
            SaveWatch(recorder),
        ]
        progress.on_first_end.append(self._loads.training_started)

    def install(self) -> None:
        for watch in self._watches:
            installed(watch, self._patches)
        self._patches.rebind_early_imports()

    def uninstall(self) -> None:
        self._trace.end()
        self._optimizers.uninstall()
        self._loads.uninstall()
        self._patches.undo()

    def finish(self, *, completed: bool) -> None:
        if not self.recorder.active:
            return
        with torch.no_grad():
            if completed:
                self._backward.finish()
            self._optimizers.finish()
            self._registry.finish()
            self._scores.finish()
            self._batches.samples.finish()


ADAPTER = PyTorchAdapter
