"""The module tree of a run with what was measured at its last sampled step."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueline.model import Module, TensorStat
from trueline.report.words import many, number, percent
from trueline.store import Run

_WIDTH_FOR_ALL = 96
_MOST_ROWS = 40


def print_modules(console: Console, run: Run, *, every: bool = False) -> None:
    """One row per module: type, own weights, line of its call, output statistics, norm of its weights' gradients.

    Down to the depth that fits on a screen, unless `every` module is wanted.
    """
    outputs = _latest(run.stats("output"))
    gradients = _latest(run.stats("gradient"))
    shown = list(run.modules.values()) if every else _down_to_what_fits(list(run.modules.values()))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("module", no_wrap=True)
    table.add_column("weights", justify="right", no_wrap=True)
    files = {module.called.file for module in shown if module.called}
    table.add_column("called", overflow="fold", justify="left" if len(files) > 1 else "right")
    narrow = console.width < _WIDTH_FOR_ALL
    columns = ("mean", "std", "zeros", "gradient") if narrow else ("mean", "std", "min", "max", "zeros", "gradient")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for module in shown:
        values = _output_columns(outputs.get(module.id)) | {"gradient": _gradient_norm(run, module, gradients)}
        table.add_row(
            _label(run, module), _parameter_count(run, module), _call(module, one_file=len(files) == 1),
            *(values.get(name, "") for name in columns),
        )  # fmt: skip
    sampled = max((stat.step for stat in outputs.values()), default=None)
    console.print()
    console.print(Text("Modules", style="bold"))
    console.print(table)
    if len(shown) < len(run.modules):
        console.print(Text(f" {many(len(run.modules) - len(shown), 'deeper module')} not shown: --modules shows all.", "dim"))
    if sampled is not None:
        words = f"Outputs, and norms of the weights' gradients, when last sampled (step {sampled})."
        if len(files) == 1:
            words += f" Lines are of {files.pop()}."
        console.print(Text(f" {words}{' Min and max need a wider terminal.' if narrow else ''}", "dim"))


def _call(module: Module, *, one_file: bool) -> str:
    if module.called is None:
        return "–"
    return f"line {module.called.line}" if one_file else str(module.called)


def _down_to_what_fits(modules: list[Module]) -> list[Module]:
    """The modules of the upper levels: as many levels as fit on a screen, the roots at least."""
    depth = max((_depth(module) for module in modules), default=0)
    while depth > 0 and sum(_depth(module) <= depth for module in modules) > _MOST_ROWS:
        depth -= 1
    return [module for module in modules if _depth(module) <= depth]


def _depth(module: Module) -> int:
    return 0 if not module.path else module.path.count(".") + 1


def _label(run: Run, module: Module) -> Text:
    depth = _depth(module)
    own = module.path.rpartition(".")[2] or module.name
    text = Text("  " * depth + own)
    text.append(f" {module.type}", style="dim")
    if module.same_as is not None and module.same_as in run.modules:
        text.append(f" (same as {run.modules[module.same_as].name})", style="magenta")
    return text


def _parameter_count(run: Run, module: Module) -> str:
    own = [parameter for parameter in run.parameters.values() if parameter.module == module.id and not parameter.buffer]
    if not own:
        return ""
    total = sum(math.prod(parameter.shape) for parameter in own)
    frozen = sum(math.prod(parameter.shape) for parameter in own if not parameter.trainable)
    return number(total) + ("" if not frozen else " frozen" if frozen == total else " partly frozen")


def _output_columns(stat: TensorStat | None) -> dict[str, str]:
    if stat is None:
        return {}
    mean, std = (f"{stat.nan} NaN", f"{stat.inf} inf") if stat.nan or stat.inf else (_short(stat.mean), _short(stat.std))
    return {"mean": mean, "std": std, "min": _short(stat.min), "max": _short(stat.max), "zeros": percent(stat.zero_share)}


def _short(value: float | None) -> str:
    """Three digits do in a table of many columns."""
    return "–" if value is None else f"{value:.3g}"


def _gradient_norm(run: Run, module: Module, gradients: dict[int, TensorStat]) -> str:
    norms = [
        stat.l2
        for parameter in run.parameters.values()
        if parameter.module == module.id and (stat := gradients.get(parameter.id)) is not None and stat.l2 is not None
    ]
    return _short(math.hypot(*norms)) if norms else ""


def _latest(stats: list[TensorStat]) -> dict[int, TensorStat]:
    """The last statistics of each subject's first tensor."""
    return {stat.subject: stat for stat in stats if stat.position == 0}
