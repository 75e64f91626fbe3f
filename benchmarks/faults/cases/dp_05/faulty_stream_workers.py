import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class DigitStream(IterableDataset):
    def __init__(self, images, labels):
        self.images, self.labels, self.epoch = images, labels, 0

    def __iter__(self):
        order = torch.randperm(len(self.images), generator=torch.Generator().manual_seed(self.epoch))
        for i in order.tolist():
            yield self.images[i], self.labels[i]


def main():
    torch.manual_seed(11)
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    stream = DigitStream(x[:1400], torch.tensor(y)[:1400])
    loader = DataLoader(stream, batch_size=35, num_workers=2)  # <- fault
    model = nn.Sequential(nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 36, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(2):
        stream.epoch = epoch
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
