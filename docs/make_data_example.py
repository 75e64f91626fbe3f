"""Makes the file of docs/data.md: the bundled wine data with faults planted by a seed.

.venv/bin/python docs/make_data_example.py wine.csv && .venv/bin/trueline data wine.csv
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_wine


def main(path: str) -> None:
    frame = load_wine(as_frame=True).frame.iloc[:140].copy()
    random = np.random.default_rng(0)
    frame["alcohol"] = frame["alcohol"].astype(object)
    frame.loc[random.choice(140, 6, replace=False), "alcohol"] = "?"
    frame.loc[random.choice(140, 9, replace=False), "magnesium"] = -999
    frame = frame.iloc[[*range(140), 20]].reset_index(drop=True)
    frame.loc[140, "target"] = 1
    frame[["alcohol", "ash", "magnesium", "hue", "proline", "target"]].to_csv(path, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
