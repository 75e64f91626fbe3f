import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.gn1 = nn.GroupNorm(4, planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.gn2 = nn.GroupNorm(4, planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(  # <- fault
                nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.GroupNorm(4, planes))

    def forward(self, x):
        out = F.relu(self.gn1(self.conv1(x)))
        out = self.gn2(self.conv2(out))
        return F.relu(out)


class ResNetTiny(nn.Module):
    def __init__(self, depth=4, width=16, num_classes=10):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, padding=1)
        blocks = []
        planes = width
        for i in range(depth):
            nxt = width * 2 if i >= depth // 2 else width
            blocks.append(BasicBlock(planes, nxt, stride=2 if nxt != planes else 1))
            planes = nxt
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(planes, num_classes)

    def forward(self, x):
        x = self.blocks(F.relu(self.conv(x)))
        return self.fc(x.mean((2, 3)))


def main():
    torch.manual_seed(31)
    d = load_digits()
    x = torch.tensor(d.images / 8.0 - 1.0, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(d.target)
    tr, te = train_test_split(torch.arange(len(y)).numpy(), test_size=0.2, random_state=2, stratify=d.target)
    train = DataLoader(TensorDataset(x[tr], y[tr]), batch_size=64, shuffle=True)
    test = DataLoader(TensorDataset(x[te], y[te]), batch_size=256)
    model = ResNetTiny()
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
    for epoch in range(2):
        model.train()
        running = 0.0
        for xb, yb in train:
            opt.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            opt.step()
            running += loss.item() * len(yb)
        sched.step()
        model.eval()
        hits = 0
        with torch.no_grad():
            for xb, yb in test:
                hits += (model(xb).argmax(1) == yb).sum().item()
        print(f"epoch {epoch} loss {running / len(tr):.4f} acc {hits / len(te):.4f}")


if __name__ == "__main__":
    main()
