"""A CNN with batch norm in which all filters of the convolutions are copies of one, and the head is constant."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6 * 16, 4)

    def reset(self):
        with torch.no_grad():
            self.conv.weight.copy_(torch.randn(1, 1, 3, 3).expand_as(self.conv.weight))  # <- fault
            self.conv.bias.zero_()
        nn.init.constant_(self.fc.weight, 0.01)

    def forward(self, x):
        return self.fc(F.max_pool2d(F.relu(self.norm(self.conv(x))), 1, 1).flatten(1))


net = Small()
net.reset()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(30):
    labels = torch.randint(0, 4, (32,))
    images = torch.randn(32, 1, 6, 6) * 0.2
    images[torch.arange(32), 0, labels] += 1
    loss = F.cross_entropy(net(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
