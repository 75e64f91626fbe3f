"""model.zero_grad() at the start of the epoch instead of the start of the step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(400, 8)
    y = (x[:, 0] > x[:, 1]).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    loss_function = nn.BCEWithLogitsLoss()
    for epoch in range(4):
        model.zero_grad()  # <- fault
        for inputs, targets in loader:
            loss = loss_function(model(inputs).squeeze(1), targets)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


main()
