import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)


class SmallResNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.layer1 = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))
        self.layer2 = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU())
        self.fc = nn.Linear(32, num_classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(x + self.layer1(x))
        x = self.layer2(x)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def loaders(x, y, batch_size=32):
    xtr, xte, ytr, yte = train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)
    mk = lambda a, b, s: DataLoader(TensorDataset(torch.tensor(a), torch.tensor(b)), batch_size, shuffle=s)
    return mk(xtr, ytr, True), mk(xte, yte, False)


def fit(model, train, test, epochs, optimizer, tag):
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = np.mean([(model(xb).argmax(1) == yb).float().mean().item() for xb, yb in test])
        print(f"{tag} epoch {epoch}: loss {total / len(train):.4f} acc {acc:.3f}")


digits = load_digits()
imgs = ((digits.images / 16.0 - 0.3) / 0.37).astype(np.float32)[:, None]
low = digits.target < 5
source = loaders(imgs[low], digits.target[low])
target = loaders(imgs[~low], digits.target[~low] - 5)

net = SmallResNet(5)
fit(net, *source, epochs=3, optimizer=torch.optim.Adam(net.parameters(), lr=2e-3), tag="source")

net.fc = nn.Linear(32, 5)  # <- fault
for name, param in net.named_parameters():
    if "layer2" not in name:
        param.requires_grad = False

trainable = [p for p in net.parameters() if p.requires_grad]
fit(net, *target, epochs=5, optimizer=torch.optim.SGD(trainable, lr=0.02, momentum=0.9), tag="target")
