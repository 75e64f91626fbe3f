"""Breast cancer: train with early stopping, go back to the best epoch, report on the test part."""
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
data = load_breast_cancer()
x_fit, x_rest, y_fit, y_rest = train_test_split(data.data, data.target, test_size=0.4, random_state=4, stratify=data.target)
scaler = StandardScaler().fit(x_fit)
tensors = [torch.tensor(scaler.transform(part), dtype=torch.float32) for part in (x_fit, x_rest)]
labels = [torch.tensor(part, dtype=torch.float32) for part in (y_fit, y_rest)]
fit = DataLoader(TensorDataset(tensors[0], labels[0]), batch_size=16, shuffle=True)
valid, test = (tensors[1][:110], labels[1][:110]), (tensors[1][110:], labels[1][110:])

net = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()
best, best_state, waited = float("inf"), None, 0
for epoch in range(40):
    net.train()
    for x, y in fit:
        optimizer.zero_grad()
        loss = criterion(net(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        score = criterion(net(valid[0]).squeeze(1), valid[1]).item()
    if score < best:
        best, waited = score, 0
        best_state = net.state_dict()  # <- fault
    else:
        waited += 1
        if waited == 8:
            break

net.load_state_dict(best_state)
net.eval()
with torch.no_grad():
    right = ((net(test[0]).squeeze(1) > 0) == (test[1] > 0.5)).float().mean()
print(f"stopped after {epoch + 1} epochs, best {best:.4f}, test accuracy {right:.3f}")
