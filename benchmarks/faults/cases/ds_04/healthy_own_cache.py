import csv
import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn

work = Path(tempfile.gettempdir()) / "trueline-own-cache"
work.mkdir(exist_ok=True)
x, y = load_diabetes(return_X_y=True)
with open(work / "prepared.csv", "w", newline="") as file:
    csv.writer(file).writerows(np.column_stack([x / x.std(0), (y - y.mean()) / y.std()]).tolist())
with gzip.open(work / "settings.json.gz", "wt") as file:
    json.dump({"width": 24, "lr": 0.02}, file)
with open(work / "MD5SUMS", "w") as file:
    file.write("0123456789abcdef0123456789abcdef  prepared.csv\n")

table = np.loadtxt(work / "prepared.csv", delimiter=",", dtype=np.float32)
with gzip.open(work / "settings.json.gz", "rt") as file:
    settings = json.load(file)
torch.manual_seed(3)
data, target = torch.from_numpy(table[:, :-1]), torch.from_numpy(table[:, -1])
net = nn.Sequential(nn.Linear(10, settings["width"]), nn.ReLU(), nn.Linear(settings["width"], 1))
sgd = torch.optim.SGD(net.parameters(), lr=settings["lr"], momentum=0.9)
for epoch in range(12):
    for rows in torch.randperm(len(data)).split(34):
        sgd.zero_grad()
        loss = nn.functional.mse_loss(net(data[rows]).squeeze(1), target[rows])
        loss.backward()
        sgd.step()
    if epoch % 4 == 0:
        print(epoch, loss.item())
