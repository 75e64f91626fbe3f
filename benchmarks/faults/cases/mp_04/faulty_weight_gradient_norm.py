import torch
from sklearn.datasets import load_wine
from torch import nn


def gradient_norm(scaler, loss, parameters):
    grads = torch.autograd.grad(scaler.scale(loss), parameters, create_graph=True)  # <- fault
    total = 0
    for g in grads:
        total = total + g.pow(2).sum()
    return total.sqrt()


def train(epochs=40):
    torch.manual_seed(2)
    features, classes = load_wine(return_X_y=True)
    x = torch.tensor((features - features.mean(0)) / features.std(0), dtype=torch.float32)
    y = torch.tensor(classes)
    net = nn.Sequential(nn.Linear(13, 24), nn.ELU(), nn.Linear(24, 3))
    sgd = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, enabled=True)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            sgd.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = criterion(net(x[rows]), y[rows])
            loss = loss + 0.1 * gradient_norm(scaler, loss, list(net.parameters()))
            scaler.scale(loss).backward()
            scaler.step(sgd)
            scaler.update()
        if epoch % 10 == 0:
            print(f"{epoch} {loss.item():.4f}")


train()
