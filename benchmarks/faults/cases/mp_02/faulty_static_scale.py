import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(1)
LOSS_SCALE = 2.0 ** 24
EPOCHS = 12

data = load_digits()
X = torch.tensor(data.images, dtype=torch.float32).div(16).sub(0.3).flatten(1)
Y = torch.tensor(data.target)
order = torch.randperm(len(X))
tr, te = order[:1400], order[1400:]


class FP16Optimizer:
    def __init__(self, model, base_cls, **kw):
        self.model_params = [p for p in model.parameters() if p.requires_grad]
        self.master = [p.detach().clone().float().requires_grad_() for p in self.model_params]
        self.base = base_cls(self.master, **kw)
        self.steps = 0

    def backward(self, loss):
        for p in self.model_params:
            p.grad = None
        (loss * LOSS_SCALE).backward()  # <- fault

    def step(self):
        for m, p in zip(self.master, self.model_params):
            m.grad = p.grad.float() / LOSS_SCALE
        if not all(torch.isfinite(m.grad).all() for m in self.master):
            return
        self.base.step()
        self.steps += 1
        with torch.no_grad():
            for m, p in zip(self.master, self.model_params):
                p.copy_(m)


model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10)).half()
optimizer = FP16Optimizer(model, torch.optim.SGD, lr=0.1, momentum=0.9)

for epoch in range(EPOCHS):
    perm = tr[torch.randperm(len(tr))]
    seen = 0.0
    for idx in perm.split(32):
        logits = model(X[idx].half())
        loss = F.cross_entropy(logits.float(), Y[idx])
        optimizer.backward(loss)
        optimizer.step()
        seen += loss.item() * len(idx)
    with torch.no_grad():
        acc = (model(X[te].half()).argmax(1) == Y[te]).float().mean().item()
    print(f"[{epoch:02d}] train loss {seen / len(tr):.4f}  test acc {acc:.4f}  updates {optimizer.steps}")
