import os
import random

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed):
    os.environ["PYTHONHASHSEED"] = str(seed)
    random.seed(seed)
    np.random.seed(seed)  # <- fault


def main():
    set_seed(2024)
    x, y = load_breast_cancer(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(StandardScaler().fit_transform(x), y, test_size=0.2)
    train = TensorDataset(torch.tensor(x_train).float(), torch.tensor(y_train).float())
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        for xb, yb in DataLoader(train, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(torch.tensor(x_test).float()).squeeze(1) > 0) == torch.tensor(y_test).bool()
    print("accuracy", right.float().mean().item())


if __name__ == "__main__":
    main()
