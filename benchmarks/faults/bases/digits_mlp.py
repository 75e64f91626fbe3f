import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(7)

digits = load_digits()
pixels = torch.tensor(digits.data, dtype=torch.float32) / 16
labels = torch.tensor(digits.target)
dataset = TensorDataset(pixels, labels)
train_set, val_set = random_split(dataset, [1437, 360])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=120)

model = nn.Sequential(
    nn.Linear(64, 96),
    nn.ReLU(),
    nn.Linear(96, 48),
    nn.ReLU(),
    nn.Linear(48, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(8):
    model.train()
    running = 0.0
    for images, targets in train_loader:
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        running += loss.item()

    model.eval()
    correct = 0
    with torch.no_grad():
        for images, targets in val_loader:
            outputs = model(images)
            correct += (outputs.argmax(dim=1) == targets).sum().item()
    print(f"epoch {epoch}: loss {running / len(train_loader):.4f}, accuracy {correct / len(val_set):.3f}")
