"""Wine cultivars by name. The numbers of the classes are made per split."""
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
wine = load_wine()
names = np.array(["barolo", "grignolino", "barbera"])[wine.target]
x_train, x_valid, n_train, n_valid = train_test_split(wine.data, names, test_size=0.35, random_state=5, stratify=names)
scaler = StandardScaler().fit(x_train)


def encode(column):
    numbers = {}
    for name in column:
        numbers.setdefault(name, len(numbers))
    return torch.tensor([numbers[name] for name in column])


def dataset(x, column):
    return TensorDataset(torch.tensor(scaler.transform(x), dtype=torch.float32), encode(column))


train_loader = DataLoader(dataset(x_train, n_train), batch_size=16, shuffle=True)
valid_loader = DataLoader(dataset(x_valid, n_valid), batch_size=32)  # <- fault

net = torch.nn.Sequential(torch.nn.Linear(13, 24), torch.nn.ReLU(), torch.nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)


@torch.no_grad()
def accuracy():
    net.eval()
    hits = total = 0
    for x, y in valid_loader:
        hits += (net(x).argmax(1) == y).sum().item()
        total += len(y)
    return hits / total


for epoch in range(30):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        print(epoch + 1, round(loss.item(), 4), "valid", round(accuracy(), 3))
