# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(42)
    images, digits = load_digits(return_X_y=True)
    dataset = TensorDataset(torch.tensor(images, dtype=torch.float32) / 16.0, torch.tensor(digits))
    loader = DataLoader(dataset, batch_size=64, shuffle=True)  # <- fault
    model = DDP(nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {total / len(loader):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
