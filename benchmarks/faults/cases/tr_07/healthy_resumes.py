import os
import tempfile

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHECKPOINT = os.path.join(tempfile.gettempdir(), f"trueline-resume-{os.getuid()}.pt")


def main():
    torch.manual_seed(5)
    x, y = load_wine(return_X_y=True)
    loader = DataLoader(TensorDataset(torch.tensor(scale(x)).float(), torch.tensor(y)), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if os.path.exists(CHECKPOINT):
        model.load_state_dict(torch.load(CHECKPOINT))
        print("resumed")
    for epoch in range(5):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
        torch.save(model.state_dict(), CHECKPOINT)


if __name__ == "__main__":
    main()
