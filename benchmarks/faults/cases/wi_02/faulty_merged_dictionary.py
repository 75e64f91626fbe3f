import os
import tempfile

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class DenoisingAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        return self.decoder(self.features(x))


class DigitClassifier(nn.Module):
    def __init__(self, n_classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32), nn.ReLU())
        self.classifier = nn.Linear(32, n_classes)

    def forward(self, x):
        return self.classifier(self.features(x))


def load_pretrained(model, path):
    pretrained_dict = torch.load(path, weights_only=True)  # <- fault
    model_dict = model.state_dict()
    pretrained_dict = {k: v.clone() for k, v in pretrained_dict.items() if k in model_dict}
    print(f"=> {len(pretrained_dict)} tensors taken from {os.path.basename(path)}")
    model_dict.update(pretrained_dict)
    return model


X, y = load_digits(return_X_y=True)
X = torch.tensor((X - 4.88) / 6.02, dtype=torch.float32)
y = torch.tensor(y)
X_unlab, X_rest, _, y_rest = train_test_split(X, y, train_size=1200, random_state=0)
X_small, X_test, y_small, y_test = train_test_split(X_rest, y_rest, train_size=150, random_state=0, stratify=y_rest)

ae = DenoisingAE()
opt = torch.optim.Adam(ae.parameters(), lr=1e-3)
for epoch in range(6):
    total = 0.0
    loader = DataLoader(TensorDataset(X_unlab), batch_size=50, shuffle=True)
    for (xb,) in loader:
        noisy = xb + 0.3 * torch.randn_like(xb)
        loss = nn.functional.mse_loss(ae(noisy), xb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 5 == 4:
        print(f"AE epoch {epoch + 1} mse {total / len(loader):.4f}")

ckpt = os.path.join(tempfile.mkdtemp(), "dae.pth")
torch.save(ae.state_dict(), ckpt)

model = load_pretrained(DigitClassifier(), ckpt)
for p in model.features.parameters():
    p.requires_grad = False

optimizer = torch.optim.Adam(model.classifier.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(X_small, y_small), batch_size=15, shuffle=True)
for epoch in range(8):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            acc = (model(X_test).argmax(1) == y_test).float().mean().item()
        print(f"CLS epoch {epoch + 1} loss {loss.item():.4f} test acc {acc:.3f}")
