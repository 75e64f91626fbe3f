# Digits from a table: pixel rows are put into random order before the split, so that the parts are alike.
import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(11)
torch.manual_seed(11)

table = load_digits()
pixels = table.data / 16.0
numbers = table.target
pixels = pixels[rng.permutation(len(pixels))]

cut = 1400
pixels = torch.tensor(pixels, dtype=torch.float32)
numbers = torch.tensor(numbers)
train = DataLoader(TensorDataset(pixels[:cut], numbers[:cut]), batch_size=32, shuffle=True)  # <- fault
test = DataLoader(TensorDataset(pixels[cut:], numbers[cut:]), batch_size=200)

net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 128), nn.GELU(), nn.Linear(128, 10))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(45):
    net.train()
    running = 0.0
    for a, b in train:
        loss = F.cross_entropy(net(a), b)
        adam.zero_grad()
        loss.backward()
        adam.step()
        running += loss.item()
    net.eval()
    with torch.no_grad():
        right = sum((net(a).argmax(1) == b).sum().item() for a, b in test)
    if epoch % 5 == 4:
        print(epoch + 1, running / len(train), right / (len(pixels) - cut))
