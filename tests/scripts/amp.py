"""Mixed precision on the CPU: bfloat16 without a scaler, then float16 with one, clipping after unscaling."""

import torch
import torch.nn.functional as F
from probe import digest, report, seed_everything
from torch import nn


def make_model():
    return nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 4))


seed_everything(21)
inputs = torch.randn(512, 16)
labels = (inputs @ torch.randn(16, 4)).argmax(dim=1)

for dtype in (torch.bfloat16, torch.float16):
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype is torch.float16, init_scale=2.0**20, growth_interval=10)
    for _ in range(3):
        for rows in torch.randperm(len(inputs)).split(32):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype):
                output = model(inputs[rows])
                loss = F.cross_entropy(output, labels[rows])
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            print(output.dtype, "loss", repr(loss.item()), repr(norm.item()), scaler.get_scale())
    print("scaler", digest(scaler.state_dict()))
    report(model, optimizer)
