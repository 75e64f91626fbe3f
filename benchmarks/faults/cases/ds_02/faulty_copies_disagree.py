"""Crops from two scanning campaigns put into one dataset; many originals were scanned in both."""
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import ConcatDataset, DataLoader, Dataset

torch.manual_seed(0)


class Campaign(Dataset):
    def __init__(self, images, classes):
        self.images = images
        self.classes = classes

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"pixels": self.images[i], "label": self.classes[i]}


data = load_digits(n_class=6)
pixels = torch.tensor(data.data, dtype=torch.float32) / 16.0
classes = torch.tensor(data.target, dtype=torch.long)
first = Campaign(pixels[:800], classes[:800])
overlap = torch.arange(700, 900)
again = classes[700:].clone()
again[:40] = (again[:40] + 3) % 6
second = Campaign(pixels[700:], again)

loader = DataLoader(ConcatDataset([first, second]), batch_size=50, shuffle=True)  # <- fault
mlp = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 6))
adamw = optim.AdamW(mlp.parameters(), lr=1e-3)
for epoch in range(8):
    correct = 0
    for batch in loader:
        logits = mlp(batch["pixels"])
        loss = nn.functional.cross_entropy(logits, batch["label"])
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        adamw.step()
        correct += (logits.argmax(-1) == batch["label"]).sum().item()
    print("epoch", epoch, "train accuracy", round(correct / len(loader.dataset), 4))
