"""House prices with a dataset class; some houses were never sold."""

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Houses(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.features = rng.standard_normal((count, 8)).astype("float32")
        weights = np.random.default_rng(0).standard_normal(8)
        self.prices = (self.features @ weights + 0.1 * rng.standard_normal(count)).astype("float32")
        self.prices[rng.choice(count, count // 200, replace=False)] = float("nan")

    def __len__(self):
        return len(self.prices)

    def __getitem__(self, index):
        return {"features": self.features[index], "price": self.prices[index]}


def main():
    torch.manual_seed(0)
    loader = DataLoader(Houses(1600, 1), batch_size=16, shuffle=True)  # <- fault
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    criterion = nn.MSELoss()
    for epoch in range(3):
        losses = []
        for batch in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch["features"])[:, 0], batch["price"])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {np.mean(losses):.4f}")


main()
