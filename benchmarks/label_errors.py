"""Label errors on digits: the review ranking of one recorded training beside cleanlab's of five, and what margins cost.

Noise of 5, 10 and 20 % is symmetric: a label becomes any other class. Average precision: how far up the ranking the wrong
labels stand (1: all of them first). The time is of the training alone, with margins recorded and
without, in blocks that alternate in one process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SHARES = (0.05, 0.1, 0.2)
EPOCHS = 20
FOLDS = 5
SCRIPT = """
import sys
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

given = np.load(sys.argv[1])
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.tensor(given["x"]), torch.tensor(given["y"])), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(int(sys.argv[2])):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
"""


def noisy_digits(share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels, labels, and which labels are wrong."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(digits)) < share
    labels = np.where(wrong, (digits + rng.integers(1, 10, len(digits))) % 10, digits)
    return (pixels / 16).astype(np.float32), labels.astype(np.int64), wrong


def average_precision(suspicious_first: np.ndarray, wrong: np.ndarray) -> float:
    hits = wrong[suspicious_first]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def our_ranking(pixels: np.ndarray, labels: np.ndarray, epochs: int) -> np.ndarray:
    """The samples in the order of the review sheet, those that were never judged last."""
    from trueline.recorder.fingerprint import fingerprints
    from trueline.store import Run, find_run
    from trueline.views.margins import suspicion, training_visits

    with tempfile.TemporaryDirectory(prefix="trueline-bench-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT)
        np.savez(Path(folder) / "data.npz", x=pixels, y=labels)
        os.environ["TRUELINE_RUNS"] = folder
        command = [sys.executable, "-m", "trueline", "run", str(script), str(Path(folder) / "data.npz"), str(epochs)]
        subprocess.run(command, check=True, capture_output=True)
        run = Run(find_run("latest"))
        visits = training_visits(run)
        samples = suspicion(visits.stretches())[0] if visits is not None else np.zeros(0, np.uint64)
        run.close()
    places = {int(key): place for place, key in enumerate(np.frombuffer(fingerprints([pixels]), ">u8"))}
    ranked = [places[int(sample)] for sample in samples]
    return np.array(ranked + sorted(set(range(len(labels))) - set(ranked)))


def cleanlab_ranking(pixels: np.ndarray, labels: np.ndarray, epochs: int) -> np.ndarray:
    """By cleanlab's label quality, with the same model trained five times, each fold judged by a model that has not seen it."""
    import torch
    from cleanlab.rank import get_label_quality_scores
    from sklearn.model_selection import StratifiedKFold

    judged = np.zeros((len(labels), 10))
    for learn, hold in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(pixels, labels):
        model = train(pixels[learn], labels[learn], epochs)
        with torch.no_grad():
            judged[hold] = torch.softmax(model(torch.tensor(pixels[hold])), 1).numpy()
    return np.asarray(np.argsort(get_label_quality_scores(labels, judged)))


def train(pixels: np.ndarray, labels: np.ndarray, epochs: int) -> Any:
    """What the recorded script does, in this process."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.tensor(pixels), torch.tensor(labels)), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model


def cost_of_margins(pixels: np.ndarray, labels: np.ndarray, rounds: int) -> tuple[float, float, float]:
    """What margins add to the time of a recorded training: median and quartiles over pairs of epochs with and without.

    The share of time that margins may take accrues in both epochs of a pair and is spent in one of them, so that what this
    one takes longer is set against both.
    """
    import trueline
    from trueline.adapters.pytorch.scores import ScoreWatch

    originals = {name: getattr(ScoreWatch, name) for name in ("at_loss", "at_output")}

    def nothing(*_: Any, **__: Any) -> None:
        return None

    ratios = []
    with tempfile.TemporaryDirectory(prefix="trueline-bench-") as folder:
        os.environ["TRUELINE_RUNS"] = folder
        with trueline.record(name="cost"):
            train(pixels, labels, 2)
            for number in range(rounds):
                seconds = {}
                for margins in (True, False) if number % 2 else (False, True):
                    for name, original in originals.items():
                        setattr(ScoreWatch, name, original if margins else nothing)
                    started = time.perf_counter()
                    train(pixels, labels, 1)
                    seconds[margins] = time.perf_counter() - started
                ratios.append(1 + (seconds[True] - seconds[False]) / (seconds[True] + seconds[False]))
        for name, original in originals.items():
            setattr(ScoreWatch, name, original)
    low, middle, high = statistics.quantiles(ratios, n=4)
    return middle, low, high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--seeds", type=int, default=1, help="noise drawn so many times; the mean is shown")
    parser.add_argument("--rounds", type=int, default=300, help="pairs of epochs whose time is compared; 0 leaves it out")
    options = parser.parse_args()
    print("| wrong labels | average precision, trueline (one training) | cleanlab (5-fold cross-validation) | ratio |")
    print("|---|---|---|---|")
    for share in SHARES:
        ours, theirs = [], []
        for seed in range(options.seeds):
            pixels, labels, wrong = noisy_digits(share, seed)
            ours.append(average_precision(our_ranking(pixels, labels, options.epochs), wrong))
            theirs.append(average_precision(cleanlab_ranking(pixels, labels, options.epochs), wrong))
        one, other = statistics.mean(ours), statistics.mean(theirs)
        print(f"| {share:.0%} | {one:.3f} | {other:.3f} | {one / other:.3f} |", flush=True)
    if options.rounds:
        pixels, labels, _ = noisy_digits(0.1, 0)
        middle, low, high = cost_of_margins(pixels, labels, options.rounds)
        print(
            f"\nTraining time with margins recorded over without: {middle:.3f} (quartiles {low:.3f} to {high:.3f}); limit 1.01."
        )


if __name__ == "__main__":
    main()
