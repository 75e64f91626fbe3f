"""An autoencoder that removes noise, tested on noisy pictures as well; the loader also gives labels that nobody uses."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train = DataLoader(TensorDataset(x[order[:1400]], y[order[:1400]]), batch_size=70, shuffle=True)
test = DataLoader(TensorDataset(x[order[1400:]], y[order[1400:]]), batch_size=100)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for clean, _ in train:
        restored = model(clean + 0.4 * torch.randn_like(clean))
        loss = nn.functional.mse_loss(restored, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        errors = [nn.functional.mse_loss(model(clean + 0.4 * torch.randn_like(clean)), clean).item() for clean, _ in test]
    print(epoch, loss.item(), sum(errors) / len(errors))
