"""Measures what recording costs: step time with Trueline against the plain script, interleaved in one process, as a ratio.

How it measures, and how to read the table: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frameworks import is_installed, name_of
from summary import Cost, cost, table

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
MOST_BYTES = 20_000_000
MOST_BYTES_STEPS = 1000


@dataclass(frozen=True)
class Workload:
    name: str
    limit: float
    rounds: int
    """Pairs of blocks; a block is one epoch of the workload."""
    peer_rounds: int = 0
    peer_steps: int = 0
    conditions: tuple[str, ...] = ("trueline", "hooks", "plain again")

    @property
    def framework(self) -> str:
        return name_of(self.name)


# 300 recorded steps each of the large ones; the small one takes a millisecond a step and needs more to be told from noise.
WORKLOADS = (
    Workload("resnet", limit=1.05, rounds=30, peer_rounds=5, peer_steps=5),
    Workload("gpt", limit=1.05, rounds=60, peer_rounds=5, peer_steps=3),
    Workload("digits_mlp", limit=1.30, rounds=60, peer_rounds=8, peer_steps=20),
    Workload("ms_cnn", limit=1.15, rounds=15),
    # Hooks break the compilation of graph mode.
    Workload("ms_cnn_graph", limit=1.10, rounds=15, conditions=("trueline", "plain again")),
)


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a process quietly; what it printed is shown only when it failed."""
    process = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})})
    if process.returncode:
        sys.stderr.write(process.stdout + process.stderr)
        raise SystemExit(f"This failed with exit code {process.returncode}: {' '.join(command)}")


def times(python: str, workload: str, conditions: list[str], rounds: int, most_steps: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="trueline-bench-") as folder:
        command = [python, str(HERE / "measure.py"), workload, "--folder", folder, "--rounds", str(rounds)]
        if most_steps is not None:
            command += ["--most-steps", str(most_steps)]
        run([*command, "--conditions", *conditions])
        measured: dict[str, Any] = json.loads((Path(folder) / "times.json").read_text())
    if measured["left_behind"]:
        print(
            f"Not a fair comparison: plain blocks of {workload} ran with replaced {', '.join(measured['left_behind'])}",
            file=sys.stderr,
        )
    return measured


def bytes_of_steps(steps: int) -> int:
    """What `trueline run` of the digits MLP leaves on disk after so many steps."""
    with tempfile.TemporaryDirectory(prefix="trueline-bench-") as folder:
        script = str(HERE / "workloads" / "digits_mlp.py")
        run([sys.executable, "-m", "trueline", "run", script, "--steps", str(steps)], {"TRUELINE_RUNS": folder})
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def python_with_msprobe() -> str:
    if importlib.util.find_spec("msprobe") is not None:
        return sys.executable
    if PEERS_PYTHON.exists():
        return str(PEERS_PYTHON)
    raise SystemExit("msprobe is not installed. Install and measure it with: make bench-peers")


def show(rows: list[Cost], written: int, written_steps: int, frameworks: dict[str, int]) -> None:
    used = "; ".join(f"{framework}, threads: {threads}" for framework, threads in frameworks.items())
    print(f"{used}. Ratios of step time to the plain script, blocks interleaved in one process.")
    print()
    print(table(rows))
    print()
    for row in rows:
        if row.condition == "trueline":
            print(
                f"{row.workload}: {row.steps} recorded steps; opening the run took {row.start_up:.2f} s once (imports included)."
            )
    allowed = MOST_BYTES * written_steps / MOST_BYTES_STEPS
    print(
        f"digits_mlp: {written_steps} steps wrote {written / 1e6:.2f} MB; limit {allowed / 1e6:.2f} MB: "
        f"{'pass' if written <= allowed else 'FAIL'}"
    )


def chosen(only: list[str] | None) -> list[Workload]:
    """The workloads to measure: those of frameworks that are installed, or those that were asked for by name."""
    if only:
        return [workload for workload in WORKLOADS if workload.name in only]
    missing = [workload.name for workload in WORKLOADS if not is_installed(workload.framework)]
    if missing:
        print(f"Not measured, for their framework is not installed: {', '.join(missing)}", file=sys.stderr)
    return [workload for workload in WORKLOADS if workload.name not in missing]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", action="store_true", help="measure msprobe too (installed by: make bench-peers)")
    parser.add_argument(
        "--only", nargs="+", choices=[workload.name for workload in WORKLOADS], help="measure these workloads only"
    )
    parser.add_argument("--threads", type=int, help="threads of the framework; its default if not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument(
        "--quick", action="store_true", help="a few steps of each, to see that it works; the figures mean nothing"
    )
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a limit is passed")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    if options.threads:
        # Inherited by every process that is started below.
        os.environ["OMP_NUM_THREADS"] = str(options.threads)
    rows: list[Cost] = []
    frameworks: dict[str, int] = {}
    peers_python = python_with_msprobe() if options.peers else None
    for workload in chosen(options.only):
        print(f"measuring {workload.name} …", file=sys.stderr)
        conditions = list(workload.conditions)
        rounds, most_steps = (2, 3) if options.quick else (workload.rounds, None)
        measured = times(sys.executable, workload.name, conditions, rounds, most_steps)
        frameworks[measured["framework"]] = measured["threads"]
        rows += [cost(measured, name, workload.limit if name == "trueline" else None) for name in conditions]
        if peers_python and workload.peer_rounds:
            rounds, steps = (1, 3) if options.quick else (workload.peer_rounds, workload.peer_steps)
            measured = times(peers_python, workload.name, ["msprobe"], rounds, steps)
            rows.append(cost(measured, "msprobe", None))
    written_steps = 100 if options.quick else MOST_BYTES_STEPS
    written = bytes_of_steps(written_steps)
    show(rows, written, written_steps, frameworks)
    if options.quick:
        print("This was a quick run of a few steps, all of them sampled in full: its figures mean nothing.")
    if options.json:
        figures = [{**dataclasses.asdict(row), "result": row.result} for row in rows]
        digits = {"steps": written_steps, "bytes": written}
        options.json.write_text(json.dumps({"frameworks": frameworks, "costs": figures, "digits_mlp_on_disk": digits}, indent=2))
    if options.strict and (any(row.result == "FAIL" for row in rows) or written > MOST_BYTES):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
