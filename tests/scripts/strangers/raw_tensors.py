"""A model that is only functions and a dict of tensors."""

import math

import torch
from sklearn.datasets import load_wine

torch.manual_seed(2)
wine = load_wine()
X = torch.tensor(wine.data, dtype=torch.float32)
X = (X - X.mean(0)) / X.std(0)
Y = torch.tensor(wine.target)
held_out = torch.rand(len(X)) < 0.2
X_test, Y_test = X[held_out], Y[held_out]
X, Y = X[~held_out], Y[~held_out]


def init(n_in, n_out):
    W = torch.randn(n_in, n_out) / math.sqrt(n_in)
    b = torch.zeros(n_out)
    return W.requires_grad_(), b.requires_grad_()


params = {}
params["W1"], params["b1"] = init(13, 24)
params["W2"], params["b2"] = init(24, 3)


def forward(p, x):
    h = torch.relu(x @ p["W1"] + p["b1"])
    return h @ p["W2"] + p["b2"]


def nll(logits, target):
    logp = logits - logits.logsumexp(dim=1, keepdim=True)
    return -logp[torch.arange(len(target)), target].mean()


optimizer = torch.optim.SGD(params.values(), lr=0.1, momentum=0.9)
for epoch in range(12):
    shuffled = torch.randperm(len(X))
    for k in range(0, len(X), 30):
        rows = shuffled[k : k + 30]
        loss = nll(forward(params, X[rows]), Y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (forward(params, X_test).argmax(1) == Y_test).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f}")
