"""Bytes travel to the model, which turns them into numbers around zero; colour pictures of two textures."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
labels = torch.randint(0, 2, (600,))
phase = torch.rand(600, 1, 1, 1) * 6.28
rows, columns = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
waves = torch.where(labels.view(-1, 1, 1, 1) == 0, torch.sin(rows + phase), torch.sin(columns + phase))
pictures = (127 + 70 * waves + 30 * torch.randn(600, 3, 16, 16)).clamp(0, 255).to(torch.uint8)
train = DataLoader(TensorDataset(pictures[:480], labels[:480]), batch_size=40, shuffle=True)
test = DataLoader(TensorDataset(pictures[480:], labels[480:]), batch_size=60)


class Texture(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.5, 0.5, 0.5]).view(1, 3, 1, 1))
        self.features = nn.Sequential(nn.Conv2d(3, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 12, 3), nn.ReLU())
        self.head = nn.Linear(12, 2)

    def forward(self, x):
        x = (x.float() / 255.0 - self.mean) / 0.25
        return self.head(self.features(x).mean(dim=(2, 3)))


model = Texture()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    model.train()
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), sum((model(x).argmax(1) == y).sum().item() for x, y in test) / 120)
