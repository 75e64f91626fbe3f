"""Binary cross-entropy written by hand: the logarithm of one minus a probability that rounds to one."""

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
tumours = load_breast_cancer()
x = torch.tensor(tumours.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(tumours.target, dtype=torch.float32)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(30, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, features):
        return torch.sigmoid(self.out(torch.relu(self.hidden(features)))).squeeze(1)


def negative_log_likelihood(p, target):
    gain = target * torch.log(p + 1e-7)
    gain = gain + (1 - target) * torch.log(1 - p)  # <- fault
    return -gain.mean()


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(12):
    for features, target in loader:
        optimizer.zero_grad()
        loss = negative_log_likelihood(model(features), target)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
