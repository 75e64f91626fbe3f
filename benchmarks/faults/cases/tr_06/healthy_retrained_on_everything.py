"""The number of epochs is chosen on validation data; then the same model goes on with all data, and is tested once."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

torch.manual_seed(2)
features, labels = load_digits(return_X_y=True)
features = (features / 16).astype("float32")
x_rest, x_test, y_rest, y_test = train_test_split(features, labels, test_size=0.2, random_state=0)
x_train, x_val, y_train, y_val = train_test_split(x_rest, y_rest, test_size=0.2, random_state=0)
train, val, test = (
    TensorDataset(torch.tensor(x), torch.tensor(y)) for x, y in ((x_train, y_train), (x_val, y_val), (x_test, y_test))
)
val_loader = DataLoader(val, batch_size=128)
test_loader = DataLoader(test, batch_size=128)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def fit(loader):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def accuracy(loader):
    model.eval()
    with torch.no_grad():
        hits = [(model(x).argmax(1) == y).float() for x, y in loader]
    return torch.cat(hits).mean().item()


train_loader = DataLoader(train, batch_size=32, shuffle=True)
for epoch in range(4):
    fit(train_loader)
    print(f"epoch {epoch}: validation {accuracy(val_loader):.3f}")

everything = DataLoader(ConcatDataset([train, val]), batch_size=32, shuffle=True)
for _ in range(2):
    fit(everything)
print(f"after all data: validation {accuracy(val_loader):.3f}, test {accuracy(test_loader):.3f}")
