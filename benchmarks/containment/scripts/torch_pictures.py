"""A convolutional classifier with all that textbooks have: loaders, dropout, a schedule, clipping, evaluation, files."""

import csv
import os
import random
import shutil
import socket
import sqlite3

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
with open("labels.csv", "w") as file:
    csv.writer(file).writerows([number % 3] for number in range(48))
with open("labels.csv") as file:
    labels = torch.tensor([int(row[0]) for row in csv.reader(file)])
pictures = torch.randn(48, 1, 8, 8)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(36, 3)
        nn.init.xavier_uniform_(self.head.weight)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2).flatten(1)
        return self.head(F.dropout(self.drop(x), 0.1, training=True))


torch.save(Net().state_dict(), "pretrained.pt")
model = Net()
model.load_state_dict(torch.load("pretrained.pt"))
nn.init.zeros_(model.head.bias)
loader = DataLoader(TensorDataset(pictures, labels), batch_size=8, shuffle=True)
test = DataLoader(TensorDataset(pictures[:16], labels[:16]), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
criterion = nn.CrossEntropyLoss()
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.connect(("192.0.2.1", 9))
except OSError:
    pass
for epoch in range(2):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("loss", loss.item())
    schedule.step()
    model.eval()
    with torch.no_grad():
        print("test", sum(criterion(model(x), y).item() for x, y in test))
os.makedirs("out", exist_ok=True)
torch.save(model.state_dict(), "out/last.tmp")
os.replace("out/last.tmp", "out/last.pt")
os.link("out/last.pt", "out/best.pt")
descriptor = os.open("out/log", os.O_WRONLY | os.O_CREAT)
os.close(descriptor)
database = sqlite3.connect("out/results.db")
database.execute("CREATE TABLE IF NOT EXISTS result (loss REAL)")
database.close()
shutil.rmtree("out")
