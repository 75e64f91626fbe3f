"""Defects are rare (one part in twenty) but look nothing like good parts."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

generator = torch.Generator().manual_seed(6)
defect = (torch.rand(3000, generator=generator) < 0.05).long()
signal = torch.randn(3000, 20, generator=generator)
signal[defect == 1, :6] += 3.0
train_set, valid_set = random_split(TensorDataset(signal, defect), [2200, 800], generator=generator)
train = DataLoader(train_set, batch_size=64, shuffle=True, generator=generator)
valid = DataLoader(valid_set, batch_size=400)

torch.manual_seed(6)
net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(8):
    net.train()
    for x, y in train:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in valid)
    print(epoch, loss.item(), right / len(valid_set))
