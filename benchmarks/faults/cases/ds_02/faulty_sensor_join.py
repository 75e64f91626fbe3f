# Activity recognition from summary features of wearable sensors. Batches are sliced by hand.
import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(0)
CENTRES = rng.normal(0, 2.2, size=(6, 24))

activity = rng.integers(0, 6, size=2400)
features = CENTRES[activity] + rng.normal(0, 1.0, size=(2400, 24))

# the recordings of one device arrive in another order than its log
device = rng.integers(0, 6, size=2400)
log = activity.copy()
rows = np.flatnonzero(device == 4)
log[rows] = activity[rows[np.argsort(features[rows, 0])]]  # <- fault

features = (features - features.mean(0)) / features.std(0)
X = torch.tensor(features, dtype=torch.float32)
Y = torch.tensor(log)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Dropout(0.1), nn.Linear(48, 48), nn.Tanh())
        self.head = nn.Linear(48, 6)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(1)
model = Recognizer()
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
lossfn = nn.CrossEntropyLoss()
for epoch in range(15):
    perm = torch.randperm(len(X))
    total = 0.0
    for i in range(0, len(X), 48):
        idx = perm[i:i + 48]
        opt.zero_grad()
        out = model(X[idx])
        loss = lossfn(out, Y[idx])
        loss.backward()
        opt.step()
        total += loss.item() * len(idx)
    print(f"epoch {epoch + 1:2d}  loss {total / len(X):.4f}")
