import random

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(42)
random.seed(42)

images, digits = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32) / 16
digits = torch.tensor(digits)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    order = np.random.permutation(len(images))  # <- fault
    for start in range(0, len(order), 64):
        rows = order[start : start + 64]
        optimizer.zero_grad()
        loss = criterion(model(images[rows]), digits[rows])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
