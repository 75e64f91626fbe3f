import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

ACCUMULATE = 4


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x):
        return x + F.relu(self.inner(self.norm(x)))


class Network(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        self.stem = nn.Linear(64, width)
        self.blocks = nn.Sequential(*[Residual(width) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = self.blocks(x)
        return self.head(x)


def accuracy(model, loader):
    model.eval()
    hits = total = 0
    with torch.inference_mode():
        for x, y in loader:
            hits += int((model(x).argmax(1) == y).sum())
            total += len(y)
    model.train()
    return hits / total


def main(epochs=6, lr=1e-2):
    torch.manual_seed(17)
    X, y = load_digits(return_X_y=True)
    everything = TensorDataset(torch.tensor(X, dtype=torch.float32) / 16, torch.tensor(y))
    order = torch.randperm(len(everything)).tolist()
    train_set, test_set = Subset(everything, order[:1408]), Subset(everything, order[1408:])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=128)

    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        running = 0.0
        optimizer.zero_grad()
        for step, (x, y) in enumerate(train_loader, start=1):
            loss = F.cross_entropy(model(x), y)
            (loss / ACCUMULATE).backward()
            running += loss.item()
            if step % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"epoch {epoch}: loss {running / len(train_loader):.3f} test accuracy {accuracy(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
