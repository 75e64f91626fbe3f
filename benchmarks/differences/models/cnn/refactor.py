from collections.abc import Iterator

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn, optim

MEAN, STD = 0.305, 0.376
N_TRAIN = 1536


def load() -> tuple[np.ndarray, np.ndarray]:
    pixels, target = load_digits(return_X_y=True)
    pixels = pixels.reshape(-1, 1, 8, 8) / 16.0
    return ((pixels - MEAN) / STD).astype(np.float32), target.astype(np.int64)


class ConvUnit(nn.Module):
    """Filter, normalise, rectify."""

    def __init__(self, channels_in: int, channels_out: int, stride: int = 1):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels_out, eps=1e-5, momentum=0.1)
        self.act = nn.ReLU()
        self.filters = nn.Conv2d(channels_in, channels_out, kernel_size=3, stride=stride, bias=False)
        nn.init.kaiming_normal_(self.filters.weight, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.pad(x, (1, 1, 1, 1))
        return self.act(self.norm(self.filters(x)))


class Recogniser(nn.Module):
    def __init__(self, classes: int = 10, hidden: int = 64):
        super().__init__()
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(512, hidden),
            nn.ReLU(),
            nn.Linear(hidden, classes),
        )
        self.trunk = nn.Sequential(ConvUnit(1, 16), ConvUnit(16, 32, stride=2))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.trunk(x))


def minibatches(x: np.ndarray, y: np.ndarray, epochs: int, size: int = 64) -> Iterator[tuple[Tensor, Tensor]]:
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for rows in np.split(order, len(x) // size):
            yield torch.from_numpy(x[rows]), torch.from_numpy(y[rows])


def main() -> None:
    torch.manual_seed(0)
    x, y = load()
    model = Recogniser().train()
    criterion = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.0)
    sgd = optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3, nesterov=True)
    decay = optim.lr_scheduler.MultiStepLR(sgd, [30, 60], gamma=0.3)
    for number, (inputs, targets) in enumerate(minibatches(x[:N_TRAIN], y[:N_TRAIN], epochs=4), 1):
        prediction = model(inputs)
        loss = criterion(prediction, targets)
        model.zero_grad()
        loss.backward()
        sgd.step()
        decay.step()
        if number % 8 == 0:
            print(f"{number:4d}  {loss.item():.4f}")
    model.eval()
    with torch.inference_mode():
        hits = model(torch.from_numpy(x[N_TRAIN:])).argmax(dim=1).numpy() == y[N_TRAIN:]
    print("held-out accuracy", hits.mean())


if __name__ == "__main__":
    main()
