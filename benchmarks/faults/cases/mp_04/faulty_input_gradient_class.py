"""Digits with a penalty on the input gradient (double backpropagation)."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.amp import GradScaler
from torch.autograd import grad
from torch.utils.data import DataLoader, TensorDataset


class SmoothClassifier:
    def __init__(self, weight=0.01, lr=2e-3):
        self.net = nn.Sequential(nn.Linear(64, 96), nn.Softplus(), nn.Linear(96, 10))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=lr)
        self.scaler = GradScaler("cpu")
        self.weight = weight

    def loss(self, x, y):
        x.requires_grad_(True)
        task = F.cross_entropy(self.net(x), y)
        (slope,) = grad(self.scaler.scale(task), x, None, True, True)  # <- fault
        return task + self.weight * slope.pow(2).sum(dim=1).mean()

    def step(self, x, y):
        self.opt.zero_grad(set_to_none=True)
        loss = self.loss(x, y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        return loss.item()

    @torch.no_grad()
    def accuracy(self, x, y):
        self.net.eval()
        right = (self.net(x).argmax(1) == y).float().mean().item()
        self.net.train()
        return right


def main():
    torch.manual_seed(0)
    data, labels = load_digits(return_X_y=True)
    data = (data / 16.0 - 0.3).astype("float32")
    split = train_test_split(data, labels, test_size=0.25, random_state=1, stratify=labels)
    x, x_test, y, y_test = map(torch.as_tensor, split)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model = SmoothClassifier()
    for epoch in range(8):
        losses = [model.step(bx, by) for bx, by in loader]
        print(epoch, sum(losses) / len(losses), model.accuracy(x_test, y_test))


if __name__ == "__main__":
    main()
