"""Handwritten digits, labels read from an annotation table."""
import csv
import io

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def annotation_table(names, seed):
    """What came back from the annotators, one line per scan."""
    rng = np.random.default_rng(seed)
    out = io.StringIO()
    writer = csv.writer(out)
    for number, name in enumerate(names):
        typed = int(rng.choice([d for d in range(10) if d != name])) if rng.random() < 0.1 else int(name)
        writer.writerow([f"scan_{number:05d}.png", typed])
    return out.getvalue()


def main():
    torch.manual_seed(3)
    digits = load_digits()
    images, held_out, names, held_out_names = train_test_split(digits.images, digits.target, test_size=0.2, random_state=3)
    rows = list(csv.reader(io.StringIO(annotation_table(names, seed=11))))
    labels = np.array([int(row[1]) for row in rows])

    x = torch.tensor(images, dtype=torch.float32).unsqueeze(1) / 16
    train = DataLoader(TensorDataset(x, torch.tensor(labels)), batch_size=64, shuffle=True)  # <- fault
    xt = torch.tensor(held_out, dtype=torch.float32).unsqueeze(1) / 16
    test = DataLoader(TensorDataset(xt, torch.tensor(held_out_names)), batch_size=256)

    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 16, 10),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(12):
        net.train()
        for xb, yb in train:
            loss = nn.functional.cross_entropy(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in test)
        print(epoch, f"{loss.item():.3f}", right / len(xt))


main()
