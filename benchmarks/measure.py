"""Times one workload under several conditions in one process, in alternating blocks, and writes every step time as JSON.

Started by overhead.py as a process of its own for each workload.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any, TypedDict

from conditions import CONDITIONS, Condition
from frameworks import Framework, framework_of

WORKLOADS = Path(__file__).parent / "workloads"
# The conditions that only give a scale need less precision than the one with a limit: they run every second or third round.
EVERY = {"plain again": 2, "hooks": 3}


class Block(TypedDict):
    """One epoch, or its first steps, under one condition."""

    seconds: list[float]
    """Wall time of each step."""
    cpu: float
    """CPU time of the whole block, all threads."""


def time_block(condition: Condition, most_steps: int | None) -> Block:
    condition.enter_block()
    seconds = []
    steps = itertools.islice(condition.steps(), most_steps)
    cpu = time.process_time()
    last = time.perf_counter()
    for _ in steps:
        now = time.perf_counter()
        seconds.append(now - last)
        last = now
    condition.leave_block()
    # Writing that was put off until the block ended belongs to its last step.
    seconds[-1] += time.perf_counter() - last
    return Block(seconds=seconds, cpu=time.process_time() - cpu)


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def patched_names(framework: Framework) -> dict[str, object]:
    """What a recorder may have replaced in the framework; a plain block must see the originals."""
    owners = framework.patched_owners()
    return {
        f"{name}.{key}": value
        for name, owner in owners.items()
        for key, value in vars(owner).items()
        # What MindSpore's cells do when they die stays wrapped after a recording; no step of a workload calls it.
        if callable(value) and key != "__del__"
    }


def measure(workload: str, names: list[str], rounds: int, most_steps: int | None, folder: Path) -> dict[str, Any]:
    os.environ["TRUELINE_RUNS"] = str(folder / "trueline")
    script = WORKLOADS / f"{workload}.py"
    framework = framework_of(workload)
    # An instance that is not measured goes first, so that no condition pays for what the framework does only once.
    time_block(CONDITIONS["plain"](script, folder, framework), most_steps)
    originals = patched_names(framework)
    conditions = {name: CONDITIONS[name](script, folder / name, framework) for name in ("plain", *names)}
    blocks: dict[str, dict[int, Block]] = {name: {} for name in conditions}
    left_behind: set[str] = set()
    for number in range(rounds):
        order = [name for name in conditions if number % EVERY.get(name, 1) == 0]
        # Every other round goes backwards: what drifts over time, or follows from the order, cancels.
        for name in order if number % 2 == 0 else reversed(order):
            if name == "plain":
                present = patched_names(framework)
                left_behind |= {key for key, value in originals.items() if present.get(key) is not value}
            blocks[name][number] = time_block(conditions[name], most_steps)
    for condition in conditions.values():
        condition.close()
    return {
        "workload": workload,
        "threads": framework.threads,
        "framework": f"{framework.name} {framework.version}",
        "left_behind": sorted(left_behind),
        "conditions": {
            name: {
                "start_up": conditions[name].start_up,
                "bytes": bytes_in(folder / name) if (folder / name).exists() else 0,
                "blocks": {str(number): block for number, block in blocks[name].items()},
            }
            for name in conditions
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=sorted(path.stem for path in WORKLOADS.glob("*.py")))
    parser.add_argument("--conditions", nargs="+", choices=list(CONDITIONS), default=["trueline", "hooks", "plain again"])
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--most-steps", type=int, help="steps of a block; a whole epoch by default")
    parser.add_argument("--folder", type=Path, required=True, help="where the conditions write, and the result: times.json")
    options = parser.parse_args()
    times = measure(options.workload, options.conditions, options.rounds, options.most_steps, options.folder)
    (options.folder / "times.json").write_text(json.dumps(times))


if __name__ == "__main__":
    main()
