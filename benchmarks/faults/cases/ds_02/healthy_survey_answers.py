"""Survey answers: eight yes/no questions, so that equal answers with different outcomes are to be expected."""
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(4)
answers = (rng.random((2000, 8)) < rng.uniform(0.3, 0.7, 8)).astype("float32")
weights = np.array([2.0, -1.5, 1.0, 0.8, -2.2, 0.5, -0.7, 1.2])
outcome = (rng.random(2000) < 1 / (1 + np.exp(-(answers - 0.5) @ weights * 1.8))).astype("float32")
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.from_numpy(answers), torch.from_numpy(outcome)), batch_size=40, shuffle=True
)
torch.manual_seed(4)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(20):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(-1), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"{epoch:2d} {np.mean(losses):.4f}")
