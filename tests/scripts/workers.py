"""Two loader workers, a generator of its own, and augmentation whose randomness lives in the workers."""

import numpy as np
import torch
import torch.nn.functional as F
from probe import report, seed_everything
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self, count):
        generator = np.random.default_rng(0)
        self.labels = generator.integers(0, 3, count)
        self.points = (generator.normal(size=(count, 2)) + 2.5 * np.eye(3)[self.labels][:, :2]).astype("float32")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        noise = 0.05 * torch.randn(2)
        return {"point": torch.from_numpy(self.points[index]) + noise, "label": torch.tensor(self.labels[index])}


def main():
    seed_everything(8)
    generator = torch.Generator().manual_seed(4)
    loader = DataLoader(Blobs(320), batch_size=32, shuffle=True, num_workers=2, generator=generator, persistent_workers=True)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for _ in range(3):
        for batch in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch["point"]), batch["label"])
            loss.backward()
            optimizer.step()
            print("loss", repr(loss.item()))
    print("generator", torch.rand(2, generator=generator).tolist())
    report(model, optimizer)


if __name__ == "__main__":
    main()
