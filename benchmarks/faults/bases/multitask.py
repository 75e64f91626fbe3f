import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split


class SharedTrunk(nn.Module):
    """Which digit it is, and how much ink was used."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 96)
        self.fc2 = nn.Linear(96, 64)
        self.digit_head = nn.Linear(64, 10)
        self.ink_head = nn.Linear(64, 1)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        h = F.relu(self.fc2(h))
        return self.digit_head(h), self.ink_head(h).squeeze(-1)


torch.manual_seed(13)
data = load_digits()
images = torch.tensor(data.data, dtype=torch.float32) / 16
digit = torch.tensor(data.target, dtype=torch.long)
ink = images.mean(dim=1)
ink = (ink - ink.mean()) / ink.std()
train_part, test_part = random_split(TensorDataset(images, digit, ink), [1400, 397])
loader = DataLoader(train_part, batch_size=40, shuffle=True)
test_loader = DataLoader(test_part, batch_size=397)

network = SharedTrunk()
opt = torch.optim.Adam(network.parameters(), lr=1e-3)

for epoch in range(8):
    network.train()
    for x, d, v in loader:
        opt.zero_grad()
        scores, amount = network(x)
        loss = F.cross_entropy(scores, d) + 0.5 * F.mse_loss(amount, v)
        loss.backward()
        opt.step()
    network.eval()
    with torch.no_grad():
        for x, d, v in test_loader:
            scores, amount = network(x)
            accuracy = (scores.argmax(1) == d).float().mean().item()
            error = F.mse_loss(amount, v).item()
    print(f"{epoch=} {loss.item()=:.3f} {accuracy=:.3f} {error=:.3f}")
