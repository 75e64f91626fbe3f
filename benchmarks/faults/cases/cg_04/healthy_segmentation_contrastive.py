"""Pixel-wise cross-entropy, a transposed sequence loss, and a contrastive (N, N) table in one script."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
segment = nn.Conv2d(3, 5, 3, padding=1)
tagger = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
left, right = nn.Linear(10, 8), nn.Linear(12, 8)
modules = nn.ModuleList([segment, tagger, left, right])
opt = torch.optim.Adam(modules.parameters(), lr=1e-3)
for step in range(25):
    images, masks = torch.randn(4, 3, 8, 8), torch.randint(0, 5, (4, 8, 8))
    pixels = segment(images)
    flat = pixels.permute(0, 2, 3, 1).reshape(-1, 5)
    words, tags = torch.randn(4, 6, 8), torch.randint(0, 6, (4, 6))
    a, b = F.normalize(left(torch.randn(16, 10)), dim=1), F.normalize(right(torch.randn(16, 12)), dim=1)
    table = a @ b.t() / 0.1
    pairs = torch.arange(16)
    rank = torch.sigmoid(table.diag()[:, None] - table.diag()).mean()
    loss = (
        F.cross_entropy(pixels, masks)
        + F.cross_entropy(flat, masks.reshape(-1))
        + F.cross_entropy(tagger(words).transpose(1, 2), tags)
        + (F.cross_entropy(table, pairs) + F.cross_entropy(table.t(), pairs)) / 2
        - 0.1 * rank
    )
    opt.zero_grad()
    loss.backward()
    opt.step()
