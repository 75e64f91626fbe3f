import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TASKS = ["pressure", "humidity", "load", "wear"]


def simulate(n, rng):
    x = rng.normal(size=(n, 8)).astype(np.float32)
    y = np.stack([
        np.sin(x[:, 0]) + 0.5 * x[:, 1],
        x[:, 2] * x[:, 3],
        -np.sin(x[:, 0]) + 0.3 * x[:, 4] ** 2,
        np.tanh(x[:, 5] - x[:, 6]),
    ], 1)
    y = (y - y.mean(0)) / y.std(0)
    y += rng.normal(scale=0.05, size=y.shape)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.float32))


class MultiTaskRegressor(nn.Module):
    def __init__(self, n_in, hidden, tasks):
        super().__init__()
        self.tasks = list(tasks)
        self.trunk = nn.Sequential(
            nn.Linear(n_in, hidden), nn.GELU(),
            nn.Linear(hidden, hidden), nn.GELU(),
        )
        self.heads = nn.ModuleDict(dict.fromkeys(self.tasks, nn.Linear(hidden, 1)))  # <- fault

    def forward(self, x):
        h = self.trunk(x)
        return {t: self.heads[t](h).squeeze(1) for t in self.tasks}


def step_losses(out, y):
    return {t: nn.functional.mse_loss(out[t], y[:, k]) for k, t in enumerate(TASKS)}


def run():
    torch.manual_seed(99)
    rng = np.random.default_rng(99)
    xtr, ytr = simulate(2000, rng)
    xva, yva = simulate(500, rng)
    loader = DataLoader(TensorDataset(xtr, ytr), batch_size=64, shuffle=True)
    model = MultiTaskRegressor(8, 64, TASKS)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        for x, y in loader:
            losses = step_losses(model(x), y)
            loss = sum(losses.values()) / len(losses)
            opt.zero_grad()
            loss.backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            val = step_losses(model(xva), yva)
        print(epoch, " ".join(f"{t}={v.item():.3f}" for t, v in val.items()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run()
