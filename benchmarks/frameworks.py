"""What the benchmark has to know of the framework that a workload uses. Only that one is imported."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

# Workloads of MindSpore are named after it.
_MINDSPORE = "ms_"


class Torch:
    """PyTorch."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.version: str = torch.__version__

    @property
    def threads(self) -> int:
        return int(self._torch.get_num_threads())

    def patched_owners(self) -> dict[str, Any]:
        """Where a recorder may have replaced something; a plain block must see the originals."""
        torch = self._torch
        return {
            "Module": torch.nn.Module,
            "Tensor": torch.Tensor,
            "Optimizer": torch.optim.Optimizer,
            "DataLoader": torch.utils.data.DataLoader,
            "functional": torch.nn.functional,
            "torch": torch,
        }

    def modules_of(self, model: Any) -> Iterator[tuple[str, Any]]:
        yield from model.named_modules()

    def numbers_of(self, output: Any) -> tuple[float, ...] | None:
        """Five numbers of what a module gave, as people write it by hand."""
        if not isinstance(output, self._torch.Tensor):
            return None
        with self._torch.no_grad():
            return (
                output.min().item(),
                output.max().item(),
                output.mean().item(),
                output.norm().item(),
                self._torch.isnan(output).sum().item(),
            )


class MindSpore:
    """MindSpore."""

    name = "mindspore"

    def __init__(self) -> None:
        import mindspore

        self._mindspore = mindspore
        self.version: str = mindspore.__version__

    @property
    def threads(self) -> int:
        """As many as it is allowed to use: it does not tell how many it does."""
        return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))

    def patched_owners(self) -> dict[str, Any]:
        from mindspore.dataset.engine.datasets import Dataset
        from mindspore.dataset.engine.iterators import Iterator as DatasetIterator
        from mindspore.graph import api
        from mindspore.ops.composite import base

        mindspore = self._mindspore
        return {
            "Cell": mindspore.nn.Cell,
            "Tensor": mindspore.Tensor,
            "Optimizer": mindspore.nn.Optimizer,
            "Dataset": Dataset,
            "Iterator": DatasetIterator,
            "_JitExecutor": api._JitExecutor,  # noqa: SLF001 - what functions under `ms.jit` are called through
            "composite": base,
            "ops": mindspore.ops,
            "functional": mindspore.mint.nn.functional,
            "mindspore": mindspore,
        }

    def modules_of(self, model: Any) -> Iterator[tuple[str, Any]]:
        yield from model.cells_and_names()

    def numbers_of(self, output: Any) -> tuple[float, ...] | None:
        if not isinstance(output, self._mindspore.Tensor):
            return None
        return (
            float(output.min()),
            float(output.max()),
            float(output.mean()),
            float(output.norm()),
            float(self._mindspore.ops.isnan(output).sum()),
        )


Framework = Torch | MindSpore


def name_of(workload: str) -> str:
    return MindSpore.name if workload.startswith(_MINDSPORE) else Torch.name


def is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def framework_of(workload: str) -> Framework:
    return MindSpore() if name_of(workload) == MindSpore.name else Torch()
