import torch
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(11)
LOSS_SCALE = 1024.0
x, y = load_diabetes(return_X_y=True)
x = torch.tensor(x, dtype=torch.float32) * 20
y = torch.tensor(y, dtype=torch.float32).unsqueeze(1)
y = (y - y.mean()) / y.std()

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(30):
    order = torch.randperm(len(x))
    for rows in order.split(32):
        inputs = x[rows].clone().requires_grad_()
        prediction = model(inputs)
        scaled = prediction.sum() * LOSS_SCALE
        slope = torch.autograd.grad(scaled, inputs, create_graph=True)[0]  # <- fault
        loss = (prediction - y[rows]).square().mean() + 0.05 * slope.square().sum(1).mean()
        optimizer.zero_grad()
        (loss * LOSS_SCALE).backward()
        for parameter in model.parameters():
            parameter.grad.div_(LOSS_SCALE)
        optimizer.step()
    if epoch % 10 == 0:
        print(epoch, loss.item())
