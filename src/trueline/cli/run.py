"""`trueline run`: record a script that runs as under plain python."""

from __future__ import annotations

import sys

import click

from trueline.cli.launch import Launch
from trueline.errors import TruelineError
from trueline.launch import Recording, load_module, load_script
from trueline.launch.place import is_rerun, is_scheduler
from trueline.launch.ranks import RanksRecording, launcher_of, unrecorded
from trueline.launch.recording import DEFAULT_BUDGET, unless_impossible
from trueline.recorder.alignment import ALIGNED_STEPS


def _share(ctx: click.Context, parameter: click.Parameter, value: str) -> float:
    text = value.strip()
    try:
        share = float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0.0 < share <= 10.0:
        raise click.BadParameter(f"Expected a share of the step time such as 5% or 0.05. Received {value!r}.")
    return share


def _steps(ctx: click.Context, parameter: click.Parameter, value: str | None) -> frozenset[int]:
    steps: set[int] = set()
    for part in filter(None, (value or "").split(",")):
        first, _, last = part.partition("-")
        if not first.strip().isdigit() or (last and not last.strip().isdigit()):
            raise click.BadParameter(f"Expected step numbers such as 0,10-12. Received {value!r}.")
        steps.update(range(int(first), int(last or first) + 1))
    return frozenset(steps)


@click.command(
    "run",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--name", help="Name of the run. Default: the script's name and the time.")
@click.option(
    "--budget",
    default=f"{DEFAULT_BUDGET:.0%}",
    callback=_share,
    show_default=True,
    help="How much of the step time recording may take; the sampling adapts to it.",
)
@click.option("--tensors", callback=_steps, metavar="STEPS", help="Keep all tensors of these steps whole, such as 0,10-12.")
@click.option("--steps", type=click.IntRange(1), metavar="N", help="End the script when N training steps are complete.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    help="End the script with the first step that is complete after S seconds.",
)
@click.option("--pynative", is_flag=True, help="MindSpore: run graph mode and ms.jit in PyNative mode, to record all of it.")
@click.option(
    "--graph-tensors", is_flag=True, help="MindSpore: stay in graph mode, and record what the cells of compiled graphs give."
)
@click.option(
    "--as-reference", is_flag=True, help="Keep weights and batches, so that other runs can be aligned to this one; no dropout."
)
@click.option("--align-to", metavar="RUN", help="Start from the weights and take the batches of this run; no dropout.")
@click.option(
    "--map", "map_file", metavar="FILE", help="With --align-to: JSON with my parameters and the reference's counterparts."
)
@click.option("--perturb", is_flag=True, help="Start one unit in the last place beside, to see how far noise is carried.")
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is a module name, as with python -m.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    name: str | None,
    budget: float,
    tensors: frozenset[int],
    steps: int | None,
    seconds: float | None,
    pynative: bool,
    graph_tensors: bool,
    as_reference: bool,
    align_to: str | None,
    map_file: str | None,
    perturb: bool,
    as_module: bool,
    script: str,
    args: tuple[str, ...],
) -> Launch:
    """Run SCRIPT ARGS... as python would, and record it.

    Output, exit code and traceback are the script's own. Options of Trueline come before SCRIPT. Distributed runs: give
    torchrun or msrun and its arguments as SCRIPT ARGS..., and all ranks are recorded into one run.
    """
    if pynative and graph_tensors:
        raise TruelineError(
            "Expected --pynative or --graph-tensors. Received both: one runs the script without graphs, the other looks into its "
            "graphs. Give one of them."
        )
    if align_to is None and (map_file is not None or (perturb and not as_reference)):
        raise TruelineError(
            "--map and --perturb are for runs that are aligned. Give --align-to RUN too; trueline runs lists them."
        )
    target = [*(["-m"] if as_module else []), script, *args]
    launcher = launcher_of(script, as_module=as_module)
    if launcher == "msrun" and steps is not None:
        raise TruelineError(
            "--steps cannot end ranks that msrun starts: its scheduler takes a rank that ends early for one that has failed. "
            "Leave it out, or let the script train for fewer steps."
        )
    if launcher is not None and (as_reference or align_to is not None):
        raise TruelineError(f"Runs of several ranks cannot be aligned. Received {launcher}. Give the script itself.")
    if launcher is not None:
        options = ["--budget", str(budget), *(["--steps", str(steps)] if steps is not None else [])]
        options += ["--seconds", str(seconds)] if seconds is not None else []
        options += ["--tensors", ",".join(map(str, sorted(tensors)))] if tensors else []
        options += ["--pynative"] if pynative else []
        ranks = unless_impossible(lambda: RanksRecording(launcher, list(args), target, name=name, options=options))
        return Launch(unrecorded(launcher, list(args)) if ranks is None else ranks.program(), ranks)
    try:
        program = load_module(script, list(args)) if as_module else load_script(script, list(args))
    except SyntaxError as problem:
        sys.excepthook(type(problem), problem.with_traceback(None), None)
        sys.exit(1)
    except OSError as problem:
        raise TruelineError(f"{script} cannot be read ({problem.strerror}). Give a readable Python script.") from problem
    alignment = None
    if as_reference or align_to is not None:
        from trueline.compare.runs.start import alignment_to

        alignment = alignment_to(align_to, map_file, perturbed=perturb)
        tensors |= ALIGNED_STEPS
    if is_scheduler():
        # It runs the script and is no rank.
        return Launch(program, None)
    recording = unless_impossible(
        lambda: Recording(
            program.name,
            target,
            name=name,
            script=script,
            budget=budget,
            kept_steps=tensors,
            last_step=steps,
            last_second=seconds,
            eager=pynative,
            graph_tensors=graph_tensors,
            alignment=alignment,
            keep_files=not is_rerun(),
        )
    )
    return Launch(program, recording)
