import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

LOSS_SCALE = 256.0
LAMBDA = 0.05


class RobustMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(13, 48)
        self.fc2 = nn.Linear(48, 48)
        self.fc3 = nn.Linear(48, 3)

    def forward(self, x):
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(x)))))


def main():
    torch.manual_seed(8)
    data = load_wine()
    x = torch.tensor(StandardScaler().fit_transform(data.data), dtype=torch.float32)
    y = torch.tensor(data.target)
    p = torch.randperm(len(x))
    tr, te = p[:130], p[130:]
    model = RobustMLP()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(20):
        order = tr[torch.randperm(len(tr))]
        tot = 0.0
        for b in order.split(26):
            xb = x[b].clone().requires_grad_(True)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(xb)
            ce = F.cross_entropy(logits.float(), y[b])
            scaled = ce * LOSS_SCALE
            (gx,) = torch.autograd.grad(scaled, xb, create_graph=True)  # <- fault
            penalty = gx.float().pow(2).sum(1).sum()
            total = scaled + LOSS_SCALE * LAMBDA * penalty
            opt.zero_grad()
            total.backward()
            for q in model.parameters():
                q.grad.div_(LOSS_SCALE)
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            opt.step()
            tot += ce.item()
        if epoch % 10 == 9:
            with torch.no_grad():
                acc = (model(x[te]).argmax(1) == y[te]).float().mean().item()
            print(f"epoch {epoch + 1} ce {tot / 5:.4f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
