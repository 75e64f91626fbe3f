"""Measures what checking a long run costs: seconds and peak memory of `trueline check` on a recorded run of 10,000 steps.

The run is recorded first, from the digits MLP of `workloads/`. How to read the figures: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKLOAD = Path(__file__).parent / "workloads" / "digits_mlp.py"
STEPS = 10_000
MOST_SECONDS = 10.0
MOST_BYTES = 1e9
TRUELINE = [sys.executable, "-m", "trueline"]


def record(folder: Path, steps: int) -> Path:
    """Record the workload below `folder`; gives the run directory."""
    environment = {**os.environ, "TRUELINE_RUNS": str(folder), "OMP_NUM_THREADS": "1"}
    command = [*TRUELINE, "run", str(WORKLOAD), "--steps", str(steps)]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.stderr.write(finished.stdout + finished.stderr)
        raise SystemExit(f"Recording failed with exit code {finished.returncode}: {' '.join(command)}")
    (directory,) = [path.parent for path in folder.glob("*/run.json")]
    return directory


def check(directory: Path) -> tuple[float, float]:
    """Seconds and peak bytes of `trueline check` on the run, as the system counts them for the process."""
    started = time.monotonic()
    process = subprocess.Popen([*TRUELINE, "check", str(directory)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    # The process is gone; its Popen object is told so that it does not wait for it.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"trueline check failed with exit code {process.returncode} on {directory}.")
    return seconds, used.ru_maxrss * 1024.0


def time_each(directory: Path) -> list[tuple[str, float]]:
    """Seconds of each check, one after the other on one open run: the first that needs a table pays for reading it."""
    from trueline.checks import registry
    from trueline.store import Run

    run, times = Run(directory), []
    for each in registry().values():
        started = time.monotonic()
        each.conclude(run)
        times.append((each.id, time.monotonic() - started))
    return times


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=STEPS, help=f"{STEPS} if not given")
    parser.add_argument("--run", type=Path, metavar="DIRECTORY", help="a run that is there already, instead of recording one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="trueline-bench-") as folder:
        directory = options.run or record(Path(folder), options.steps)
        size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
        seconds, peak = check(directory)
        each = time_each(directory)
    kept = seconds <= MOST_SECONDS and peak <= MOST_BYTES
    print(
        f"{'run ' + str(options.run) if options.run else f'digits_mlp, {options.steps} steps'}: {size / 1e6:.1f} MB on disk.\n"
        f"trueline check: {seconds:.1f} s (goal {MOST_SECONDS:.0f} s), peak memory {peak / 1e6:.0f} MB "
        f"(goal {MOST_BYTES / 1e6:.0f} MB): {'pass' if kept else 'FAIL'}"
    )
    print("\nSeconds per check, slowest first (the first that needs a table reads it from disk):")
    for check_id, taken in sorted(each, key=lambda pair: -pair[1]):
        print(f"  {check_id}  {taken:7.3f}")
    if options.json:
        figures = {"steps": options.steps, "bytes": size, "seconds": seconds, "peak_bytes": peak, "checks": dict(each)}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
