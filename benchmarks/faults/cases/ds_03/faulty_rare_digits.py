import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Subset, TensorDataset


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(64, 32)
        self.fc2 = torch.nn.Linear(32, 10)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


torch.manual_seed(0)
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.4, random_state=0, stratify=y)
full = TensorDataset(torch.tensor(X_train, dtype=torch.float32), torch.tensor(y_train))
# scanning of these stopped after the first box
available = {8: 5, 9: 5, 3: 4}
kept, seen = [], {}
for index, label in enumerate(y_train):
    seen[label] = seen.get(label, 0) + 1
    if seen[label] <= available.get(label, 10_000):
        kept.append(index)
loader = DataLoader(Subset(full, kept), batch_size=32, shuffle=True)  # <- fault
test = DataLoader(TensorDataset(torch.tensor(X_test, dtype=torch.float32), torch.tensor(y_test)), batch_size=128)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(15):
    net.train()
    for xb, yb in loader:
        opt.zero_grad()
        F.cross_entropy(net(xb), yb).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        correct = sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in test)
    print(epoch, correct / len(y_test))
