"""Command line: python -m splitapp.train --epochs 8"""

from __future__ import annotations

import argparse

import torch
from torch.nn import functional as F

from .data import make_loaders
from .model import MoonsNet


def evaluate(model: torch.nn.Module, loader: torch.utils.data.DataLoader) -> float:
    was_training = model.training
    model.eval()
    correct = 0
    with torch.inference_mode():
        for points, labels in loader:
            correct += int((model(points).argmax(-1) == labels).sum())
    model.train(was_training)
    return correct / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    train_loader, valid_loader = make_loaders(600, 40, options.seed)
    model = MoonsNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        for points, labels in train_loader:
            loss = F.cross_entropy(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch={epoch} loss={loss.item():.4f} accuracy={evaluate(model, valid_loader):.3f}")


if __name__ == "__main__":
    main()
