# Two kinds of cells whose measurements overlap: about one in six is on the other side.
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

g = torch.Generator().manual_seed(2)
kind = torch.randint(0, 2, (3000,), generator=g)
reading = torch.randn(3000, 6, generator=g)
reading[:, 0] += 1.6 * kind
reading[:, 1] -= 1.2 * kind
data = TensorDataset(reading, kind)
train_set, test_set = random_split(data, [2400, 600], generator=g)
train_loader = DataLoader(train_set, batch_size=60, shuffle=True, generator=g)
test_loader = DataLoader(test_set, batch_size=200)

torch.manual_seed(2)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(15):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader) / len(test_set)
    print(epoch, accuracy)
