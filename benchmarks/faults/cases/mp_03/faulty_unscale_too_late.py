"""A trainer class that unscales, but one line too late; accumulation over two batches, clipping by value."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu")

    def update(self) -> None:
        nn.utils.clip_grad_value_(self.model.parameters(), 0.5)  # <- fault
        self.scaler.unscale_(self.optimizer)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()

    def fit(self, x: torch.Tensor, y: torch.Tensor, epochs: int) -> None:
        for _ in range(epochs):
            order = torch.randperm(len(x))
            for number, picked in enumerate(order.split(40)):
                loss = nn.functional.mse_loss(self.model(x[picked]), y[picked]) / 2
                self.scaler.scale(loss).backward()
                if number % 2:
                    self.update()


torch.manual_seed(0)
x = torch.randn(400, 8)
y = x.square().sum(1, keepdim=True)
trainer = Trainer(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)))
trainer.fit(x, y, 4)
