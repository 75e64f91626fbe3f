"""A new nn.Dropout at every call: it is always in training mode, whatever the model's mode is."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 32)
        self.second = nn.Linear(32, 2)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = nn.Dropout(p=0.5)(x)  # <- fault
        return self.second(x)


torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] > 0).long()
train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=30, shuffle=True)
test = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=50)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    net.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, sum((net(a).argmax(1) == b).sum().item() for a, b in test))
