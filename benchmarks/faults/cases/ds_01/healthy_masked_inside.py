"""Several tasks per molecule, most of them never measured: the loss leaves those out. Gaps in the inputs are masked inside."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
descriptors = torch.randn(900, 12)
activity = descriptors @ torch.randn(12, 4) / 3 + 0.1 * torch.randn(900, 4)
activity[torch.rand(900, 4) < 0.4] = float("nan")
descriptors[torch.rand(900, 12) < 0.05] = -999.0
loader = DataLoader(TensorDataset(descriptors, activity), batch_size=45, shuffle=True)


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(24, 40), nn.ReLU())
        self.heads = nn.Linear(40, 4)

    def forward(self, x):
        missing = x == -999.0
        return self.heads(self.body(torch.cat([x.masked_fill(missing, 0.0), missing.float()], dim=1)))


model = Tasks()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for x, y in loader:
        known = ~torch.isnan(y)
        error = (model(x) - torch.nan_to_num(y)) ** 2
        loss = error[known].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
