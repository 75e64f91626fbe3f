"""Letting MindSpore's compiler write down what it compiles, into the run directory, for as long as one call lasts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mindspore import context
from mindspore._c_expression import ms_ctx_param

# The stage at which types and shapes are known and nothing has been optimised away.
_STAGE = "type_inference"
_ONLY_STAGE = "MS_DEV_DUMP_IR_PASSES"
_ASKED_BY_USER = ("MS_DEV_SAVE_GRAPHS", "MS_DEV_SAVE_GRAPHS_PATH", _ONLY_STAGE)
# A larger text takes longer to read than a first step may be kept waiting.
MOST_BYTES = 256 << 20


@contextmanager
def written_graphs(folder: Path | None) -> Iterator[list[Path]]:
    """Gives a list that holds, when the block is left, the files of the programs that were compiled in it.

    The caller reads them and calls `remove`. Nothing is asked for where the user lets the compiler write files himself.
    """
    found: list[Path] = []
    settings = context._context()
    if folder is None or any(name in os.environ for name in _ASKED_BY_USER) or settings.get_param(ms_ctx_param.save_graphs):
        yield found
        return
    before: Any = settings.get_param(ms_ctx_param.save_graphs_path)
    os.environ[_ONLY_STAGE] = _STAGE
    settings.set_param(ms_ctx_param.save_graphs, 1)
    settings.set_param(ms_ctx_param.save_graphs_path, str(folder.absolute()))
    try:
        yield found
    finally:
        settings.set_param(ms_ctx_param.save_graphs, 0)
        settings.set_param(ms_ctx_param.save_graphs_path, before)
        os.environ.pop(_ONLY_STAGE, None)
        # The script's call goes on where they cannot be read.
        with suppress(OSError):
            found += sorted(path for path in folder.rglob(f"*_{_STAGE}_*.ir") if path.stat().st_size <= MOST_BYTES)


def remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
