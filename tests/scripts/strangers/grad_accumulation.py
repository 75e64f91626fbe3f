import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUM = 4
torch.manual_seed(0)

w = torch.randn(12, 4)
x = torch.randn(640, 12)
y = (x @ w + 0.1 * torch.randn(640, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)

model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.05), nn.Linear(48, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()

model.train()
optimizer.zero_grad()
for epoch in range(8):
    epoch_loss = 0.0
    for i, (inputs, targets) in enumerate(loader):
        loss = loss_fn(model(inputs), targets) / ACCUM  # normalise: the gradients of ACCUM batches are summed
        loss.backward()
        epoch_loss += loss.item() * ACCUM

        if (i + 1) % ACCUM == 0 or i + 1 == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    print(f"epoch {epoch}: {epoch_loss / len(loader):.4f}")
