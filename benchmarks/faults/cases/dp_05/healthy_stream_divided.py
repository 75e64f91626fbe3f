import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class DigitStream(IterableDataset):
    def __init__(self, images, labels):
        self.images, self.labels, self.epoch = images, labels, 0

    def __iter__(self):
        info = get_worker_info()
        order = torch.randperm(len(self.images), generator=torch.Generator().manual_seed(self.epoch))
        mine = order if info is None else order[info.id :: info.num_workers]
        for i in mine.tolist():
            yield self.images[i], self.labels[i]


torch.manual_seed(2)
x, y = load_digits(return_X_y=True)
stream = DigitStream(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.8)
for epoch in range(3):
    stream.epoch = epoch
    for images, labels in DataLoader(stream, batch_size=30, num_workers=2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
