"""Multi-task: one trunk, a classification head, a regression head and a reconstruction head, losses summed."""

import argparse

import torch
import torch.nn as nn


class MultiTask(nn.Module):
    def __init__(self, n_in=10, n_hidden=40):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, n_hidden), nn.BatchNorm1d(n_hidden), nn.ReLU())
        self.cls = nn.Linear(n_hidden, 3)
        self.reg = nn.Linear(n_hidden, 1)
        self.rec = nn.Linear(n_hidden, n_in)

    def forward(self, x):
        h = self.trunk(x)
        return {"cls": self.cls(h), "reg": self.reg(h).squeeze(-1), "rec": self.rec(h)}


def compute_losses(out, batch):
    return {
        "cls": nn.functional.cross_entropy(out["cls"], batch["label"]),
        "reg": nn.functional.mse_loss(out["reg"], batch["value"]),
        "rec": 0.5 * nn.functional.l1_loss(out["rec"], batch["x"]),
    }


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--bs", type=int, default=32)
    args = ap.parse_args()
    torch.manual_seed(13)
    x = torch.randn(512, 10)
    data = [{"x": row, "label": row[:3].argmax(), "value": row.sum() / 3} for row in x]
    train = torch.utils.data.DataLoader(data[:448], args.bs, shuffle=True)
    valid = torch.utils.data.DataLoader(data[448:], 64)
    model = MultiTask()
    opt = torch.optim.Adam(model.parameters(), lr=4e-3)
    for ep in range(args.epochs):
        model.train()
        for batch in train:
            losses = compute_losses(model(batch["x"]), batch)
            opt.zero_grad()
            sum(losses.values()).backward()
            opt.step()
        model.eval()
        with torch.no_grad():
            for batch in valid:
                parts = {k: round(v.item(), 3) for k, v in compute_losses(model(batch["x"]), batch).items()}
        print(ep, parts)


if __name__ == "__main__":
    main()
