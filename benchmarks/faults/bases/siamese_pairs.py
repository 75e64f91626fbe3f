import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class PairDataset(Dataset):
    def __init__(self, images, labels, size, seed):
        self.images = torch.as_tensor(images, dtype=torch.float32) / 16
        rng = np.random.default_rng(seed)
        by_class = [np.flatnonzero(labels == c) for c in range(10)]
        self.pairs = []
        for k in range(size):
            same = k % 2 == 0
            a = int(rng.integers(0, 10))
            b = a if same else int((a + rng.integers(1, 10)) % 10)
            self.pairs.append((int(rng.choice(by_class[a])), int(rng.choice(by_class[b])), float(same)))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, k):
        i, j, same = self.pairs[k]
        return self.images[i], self.images[j], torch.tensor(same)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 12))

    def forward(self, left, right):
        return self.layers(left), self.layers(right)


def contrastive(a, b, same, margin=1.5):
    distance = F.pairwise_distance(a, b)
    return (same * distance.pow(2) + (1 - same) * F.relu(margin - distance).pow(2)).mean()


def main():
    torch.manual_seed(9)
    digits = load_digits()
    order = np.random.default_rng(9).permutation(len(digits.target))
    images, labels = digits.data[order], digits.target[order]
    train = DataLoader(PairDataset(images[:1300], labels[:1300], 2400, 1), batch_size=64, shuffle=True)
    test = DataLoader(PairDataset(images[1300:], labels[1300:], 600, 2), batch_size=200)
    tower = Tower()
    optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3)
    for epoch in range(6):
        tower.train()
        total = 0.0
        for left, right, same in train:
            a, b = tower(left, right)
            loss = contrastive(a, b, same)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        tower.eval()
        hits = 0
        with torch.no_grad():
            for left, right, same in test:
                a, b = tower(left, right)
                hits += ((F.pairwise_distance(a, b) < 0.75).float() == same).sum().item()
        print(f"epoch {epoch}: {total / len(train):.4f}, pairs right {hits / len(test.dataset):.3f}")


main()
