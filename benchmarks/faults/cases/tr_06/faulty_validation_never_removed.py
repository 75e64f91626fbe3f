"""Faces of numbers: a validation part is taken from the training data for early stopping."""

import copy

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(11)


class Rows(Dataset):
    def __init__(self, features, labels):
        self.features = np.asarray(features, dtype=np.float32) / 16
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"pixels": self.features[index], "label": int(self.labels[index])}


features, labels = load_digits(return_X_y=True)
rows = np.random.default_rng(1).permutation(len(labels))
features, labels = features[rows], labels[rows]


def make_loaders(batch_size):
    chosen = np.random.default_rng(2).choice(len(labels), 300, replace=False)
    train = DataLoader(Rows(features, labels), batch_size=batch_size, shuffle=True)
    held = DataLoader(Rows(features[chosen], labels[chosen]), batch_size=100)  # <- fault
    return train, held


def validate(model, loader):
    model.eval()
    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in loader:
            total += nn.functional.cross_entropy(model(batch["pixels"]), batch["label"], reduction="sum").item()
            count += len(batch["label"])
    return total / count


def main():
    train, held = make_loaders(50)
    model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    best, best_state, patience = float("inf"), None, 2
    for epoch in range(6):
        model.train()
        for batch in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch["pixels"]), batch["label"])
            loss.backward()
            optimizer.step()
        value = validate(model, held)
        print(f"epoch {epoch + 1}: {value:.4f}")
        if value < best:
            best, best_state, patience = value, copy.deepcopy(model.state_dict()), 2
        else:
            patience -= 1
            if patience == 0:
                break
    model.load_state_dict(best_state)
    print(f"best {best:.4f}")


main()
