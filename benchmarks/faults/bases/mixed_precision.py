import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
wine = load_wine()
x_train, x_test, y_train, y_test = train_test_split(wine.data, wine.target, test_size=0.3, random_state=2, stratify=wine.target)
scaler = StandardScaler()
x_train = torch.tensor(scaler.fit_transform(x_train), dtype=torch.float32)
x_test = torch.tensor(scaler.transform(x_test), dtype=torch.float32)
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=20, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
grad_scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
criterion = nn.CrossEntropyLoss()

for epoch in range(20):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(xb)
            loss = criterion(logits, yb)
        grad_scaler.scale(loss).backward()
        grad_scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        grad_scaler.step(optimizer)
        grad_scaler.update()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
            accuracy = (model(x_test).argmax(1) == y_test).float().mean()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {accuracy:.4f} scale {grad_scaler.get_scale():.0f}")
