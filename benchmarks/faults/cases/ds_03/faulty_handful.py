"""A first model on the samples that are labelled so far; the rest is for validation."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
digits = load_digits()
x = torch.tensor(digits.images / 16, dtype=torch.float32).flatten(1)
y = torch.tensor(digits.target)
mixed = torch.randperm(len(x))
labelled, rest = mixed[:24], mixed[24:]
train = DataLoader(TensorDataset(x[labelled], y[labelled]), batch_size=6, shuffle=True)  # <- fault
valid = DataLoader(TensorDataset(x[rest], y[rest]), batch_size=256)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(40):
    model.train()
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in valid)
        print(epoch + 1, f"{loss.item():.4f}", f"{right / len(rest):.3f}")
