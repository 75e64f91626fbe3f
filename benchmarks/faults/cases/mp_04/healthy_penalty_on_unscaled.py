import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data, labels = load_digits(return_X_y=True)
x, y = torch.tensor(data / 16.0 - 0.3, dtype=torch.float32), torch.tensor(labels)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
net = nn.Sequential(nn.Linear(64, 96), nn.Softplus(), nn.Linear(96, 10))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu")
for epoch in range(6):
    for images, targets in loader:
        images.requires_grad_(True)
        task = F.cross_entropy(net(images), targets)
        (slope,) = torch.autograd.grad(task, images, create_graph=True)
        loss = task + 10 * slope.pow(2).sum(dim=1).mean()
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    print(epoch, loss.item())
