import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class PairDataset(Dataset):
    """Pairs of digits: label 0.0 for the same class, 1.0 for different ones."""

    def __init__(self, X, Y, n_pairs, seed):
        rng = np.random.RandomState(seed)
        self.pairs = []
        for k in range(n_pairs):
            i = rng.randint(len(X))
            if k % 2:
                j = rng.choice(np.where(Y == Y[i])[0])
            else:
                j = rng.choice(np.where(Y != Y[i])[0])
            self.pairs.append((X[i], X[j], np.float32(Y[i] != Y[j])))

    def __getitem__(self, i):
        return self.pairs[i]

    def __len__(self):
        return len(self.pairs)


class SiameseNetwork(nn.Module):
    def __init__(self):
        super(SiameseNetwork, self).__init__()
        self.tower = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(inplace=True), nn.Linear(64, 32), nn.ReLU(inplace=True), nn.Linear(32, 16)
        )

    def forward_once(self, x):
        return self.tower(x)

    def forward(self, a, b):
        return self.forward_once(a), self.forward_once(b)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super(ContrastiveLoss, self).__init__()
        self.margin = margin

    def forward(self, out1, out2, label):
        d = F.pairwise_distance(out1, out2)
        return torch.mean((1 - label) * d.pow(2) + label * torch.clamp(self.margin - d, min=0.0).pow(2))


torch.manual_seed(1)
X, Y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
train_dl = DataLoader(PairDataset(X[:1400], Y[:1400], 1024, 0), shuffle=True, batch_size=64)
test_dl = DataLoader(PairDataset(X[1400:], Y[1400:], 256, 1), batch_size=64)
net = SiameseNetwork()
criterion = ContrastiveLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)

for epoch in range(8):
    net.train()
    running = 0.0
    for a, b, label in train_dl:
        optimizer.zero_grad()
        loss = criterion(*net(a, b), label)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print("Epoch {}: loss {:.4f}".format(epoch, running / len(train_dl)))

net.eval()
good = 0
with torch.no_grad():
    for a, b, label in test_dl:
        o1, o2 = net(a, b)
        good += ((F.pairwise_distance(o1, o2) > 0.5).float() == label).sum().item()
print("test accuracy", good / len(test_dl.dataset))
