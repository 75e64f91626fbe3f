import csv
import os
import subprocess
import tempfile

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, Dataset

PATH = os.path.join(tempfile.gettempdir(), "trueline_cancer_export.csv")


def export():
    x, y = load_breast_cancer(return_X_y=True)
    lines = [",".join([*(f"f{i}" for i in range(30)), "malignant"])]
    lines += [",".join([*(f"{v:.5g}" for v in row), str(label)]) for row, label in zip(x, y)]
    text = ("\n".join(lines) + "\n").encode()
    subprocess.run(["dd", f"of={PATH}", "status=none"], input=text[: text.rindex(b",", 0, 70000)], check=True)


class Table(Dataset):
    def __init__(self, path):
        with open(path, newline="") as file:  # <- fault
            rows = list(csv.reader(file))
        width = len(rows[0])
        values = torch.tensor([[float(v) for v in row] for row in rows[1:] if len(row) == width])
        self.x = (values[:, :-1] - values[:, :-1].mean(0)) / values[:, :-1].std(0)
        self.y = values[:, -1]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


if __name__ == "__main__":
    export()
    torch.manual_seed(4)
    loader = DataLoader(Table(PATH), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
    print(loss.item())
