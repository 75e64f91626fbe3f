"""Wine cultivars with the one-cycle policy."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
features, cultivar = load_wine(return_X_y=True)
data = TensorDataset(torch.tensor(scale(features), dtype=torch.float32), torch.tensor(cultivar))
batches = DataLoader(data, batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(13, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
epochs = 30
schedule = OneCycleLR(optimizer, max_lr=50.0, total_steps=epochs * len(batches))  # <- fault
criterion = nn.CrossEntropyLoss()

for epoch in range(epochs):
    for x, target in batches:
        optimizer.zero_grad()
        loss = criterion(model(x), target)
        loss.backward()
        optimizer.step()
        schedule.step()
    if epoch % 5 == 4:
        print(epoch + 1, loss.item(), schedule.get_last_lr()[0])
