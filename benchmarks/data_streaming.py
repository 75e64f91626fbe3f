"""Measures `trueline data` on CSV and Parquet files of two sizes: rows per second, and the peak of its memory.

Each measurement is a process of its own. Beside it stands one plain pass over the same file with pyarrow, which only reads:
what is more is the price of looking. Peak memory must not grow with the file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

ROWS_AT_A_TIME = 250_000
# What a row of the file below takes: in CSV as text, in Parquet encoded.
BYTES_PER_ROW = {"csv": 88, "parquet": 41}
MOST_MEMORY = 1000

EXAMINE = """
import resource, sys, time
from trueline.datasets import examine, open_dataset
start = time.perf_counter()
rows = sum(examine(table).rows for table in open_dataset(sys.argv[1]))
"""
READ = """
import resource, sys, time
import pyarrow.csv, pyarrow.parquet
start = time.perf_counter()
path = sys.argv[1]
batches = pyarrow.csv.open_csv(path) if path.endswith("csv") else pyarrow.parquet.ParquetFile(path).iter_batches()
rows = sum(batch.num_rows for batch in batches)
"""
TELL = """
import json
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(json.dumps({"rows": rows, "seconds": time.perf_counter() - start, "peak": peak}))
"""


def some_rows(first: int, count: int, random: np.random.Generator) -> pa.Table:
    """Rows as they are met: numbers, a sentinel, words where numbers should be, categories, names, a label."""
    measured = np.where(random.random(count) < 0.01, -999.0, random.random(count).round(4) * 40)
    ages = random.integers(0, 90, count).astype(str).astype(object)
    ages[random.random(count) < 0.02] = "?"
    names = np.char.add("user ", random.integers(0, 10**6, count).astype(str)).astype(object)
    names[random.random(count) < 0.03] = None
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "a": random.normal(size=count),
            "b": measured,
            "age": pa.array(ages, pa.string()),
            "c": random.random(count).round(6),
            "colour": pa.array(random.choice(["red", "green", "blue"], count)),
            "name": pa.array(names, pa.string()),
            "e": random.integers(0, 10**9, count),
            "flag": random.integers(0, 2, count),
            "label": random.integers(0, 10, count),
        }
    )


def generate(path: Path, gigabytes: float) -> None:
    rows = int(gigabytes * 1e9 / BYTES_PER_ROW[path.suffix[1:]])
    random = np.random.default_rng(0)
    schema = some_rows(0, 1, random).schema
    is_csv = path.suffix == ".csv"
    writer = pyarrow.csv.CSVWriter(path, schema) if is_csv else pyarrow.parquet.ParquetWriter(path, schema)
    with writer:
        for first in range(0, rows, ROWS_AT_A_TIME):
            writer.write_table(some_rows(first, min(ROWS_AT_A_TIME, rows - first), random))


def measured(code: str, path: Path) -> dict[str, float]:
    process = subprocess.run([sys.executable, "-c", code + TELL, str(path)], capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(process.stderr)
    figures: dict[str, float] = json.loads(process.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=0.5, help="size of the larger file; the smaller one has a quarter of it")
    parser.add_argument("--folder", help="where the files are made (and removed); a temporary folder otherwise")
    arguments = parser.parse_args()
    print(f"{'file':<10}{'size':>9}{'rows':>13}{'rows/s':>12}{'peak':>10}{'plain pass':>14}{'peak':>10}")
    too_much = False
    with tempfile.TemporaryDirectory(prefix="trueline-bench-", dir=arguments.folder) as folder:
        for kind in ("csv", "parquet"):
            for gigabytes in (arguments.gb / 4, arguments.gb):
                path = Path(folder, f"data.{kind}")
                generate(path, gigabytes)
                looked, plain = measured(EXAMINE, path), measured(READ, path)
                size = path.stat().st_size / 1e6
                print(
                    f"{kind:<10}{size:>6,.0f} MB{looked['rows']:>13,}{looked['rows'] / looked['seconds']:>12,.0f}"
                    f"{looked['peak']:>7,.0f} MB{plain['rows'] / plain['seconds']:>12,.0f}/s{plain['peak']:>7,.0f} MB",
                    flush=True,
                )
                too_much = too_much or looked["peak"] > MOST_MEMORY
                path.unlink()
    if too_much:
        raise SystemExit(f"More than {MOST_MEMORY} MB of memory were needed.")


if __name__ == "__main__":
    main()
