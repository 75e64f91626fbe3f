"""A network with an auxiliary head for training, in-place activations, and features that are handed out beside the scores."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.pointwise = nn.Conv2d(16, 24, 1)
        self.auxiliary = nn.Linear(16, 10)
        self.head = nn.Linear(24, 10)
        self.log_temperature = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        x = self.stem(x)
        early = self.auxiliary(x.mean((2, 3))) if self.training else None
        x = self.pointwise(self.depthwise(x))
        x.relu_()
        pooled = x.mean((2, 3))
        scores = self.head(pooled) * self.log_temperature.exp()
        return scores, early, pooled


torch.manual_seed(5)
digits = load_digits()
data = TensorDataset(torch.tensor(digits.images[:, None] / 16, dtype=torch.float32), torch.tensor(digits.target))
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
loss_of = nn.CrossEntropyLoss()
for epoch in range(2):
    net.train()
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        scores, early, _ = net(x)
        loss = loss_of(scores, y) + 0.3 * loss_of(early, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(x)[0].argmax(1) == y).sum().item() for x, y in DataLoader(data, batch_size=256))
    print(epoch, right / len(data))
