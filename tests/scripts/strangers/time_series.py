"""One-step-ahead forecast of a noisy seasonal series. The windows stay in the order of time on purpose."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


@dataclass(frozen=True)
class Config:
    window: int = 24
    batch: int = 32
    epochs: int = 8
    lr: float = 5e-3


class Forecaster(torch.nn.Module):
    def __init__(self, hidden: int = 24) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(1, hidden, batch_first=True)
        self.readout = torch.nn.Linear(hidden, 1)

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(window)
        return self.readout(states[:, -1])


def windows(series: np.ndarray, size: int) -> TensorDataset:
    stacked = np.lib.stride_tricks.sliding_window_view(series, size + 1)
    data = torch.tensor(stacked.copy(), dtype=torch.float32).unsqueeze(-1)
    return TensorDataset(data[:, :-1], data[:, -1])


def run(cfg: Config) -> None:
    torch.manual_seed(3)
    t = np.arange(800)
    series = np.sin(2 * np.pi * t / 24) + 0.3 * np.sin(2 * np.pi * t / 7) + 0.05 * np.random.default_rng(0).normal(size=800)
    series = (series - series[:640].mean()) / series[:640].std()
    train = DataLoader(windows(series[:640], cfg.window), batch_size=cfg.batch, shuffle=False)
    valid = DataLoader(windows(series[640:], cfg.window), batch_size=cfg.batch, shuffle=False)

    model = Forecaster()
    loss_fn = torch.nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    for epoch in range(cfg.epochs):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            mse = float(np.mean([loss_fn(model(x), y).item() for x, y in valid]))
        scheduler.step(mse)
        print(f"{epoch=} {mse=:.4f}")


if __name__ == "__main__":
    run(Config())
