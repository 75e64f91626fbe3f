"""Full-batch LBFGS with a closure: fit a sine."""

import torch

torch.manual_seed(0)
X = torch.linspace(-3, 3, 200).reshape(-1, 1)
Y = torch.sin(2 * X) + 0.02 * torch.randn_like(X)

net = torch.nn.Sequential(
    torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1)
)
mse = torch.nn.MSELoss()
optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=8, history_size=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = mse(net(X), Y)
    loss.backward()
    return loss


for i in range(15):
    loss = optimizer.step(closure)
    if i % 5 == 0 or i == 14:
        print(i, f"{loss.item():.6f}")
