"""A folder-like data set (one class after the other), trained for a single epoch, with a custom Dataset."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self, per_class: int, classes: int) -> None:
        generator = torch.Generator().manual_seed(1)
        centres = torch.randn(classes, 3, 8, 8, generator=generator)
        self.samples = []
        for label in range(classes):
            for _ in range(per_class):
                self.samples.append((centres[label] + 0.5 * torch.randn(3, 8, 8, generator=generator), label))

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int):
        return self.samples[index]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.head = torch.nn.Linear(8 * 16, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.head(x.flatten(1))


def main() -> None:
    torch.manual_seed(0)
    loader = DataLoader(Blobs(120, 5), batch_size=20, shuffle=False, drop_last=True)  # <- fault
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
