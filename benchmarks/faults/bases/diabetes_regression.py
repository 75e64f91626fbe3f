import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes

np.random.seed(0)
torch.manual_seed(0)

bunch = load_diabetes(scaled=False)
features = bunch.data.astype(np.float32)
target = bunch.target.astype(np.float32)

order = np.random.permutation(len(target))
features, target = features[order], target[order]
n_train = 350
mean, std = features[:n_train].mean(axis=0), features[:n_train].std(axis=0)
features = (features - mean) / std
t_mean, t_std = target[:n_train].mean(), target[:n_train].std()
target = (target - t_mean) / t_std

x_train, y_train = torch.from_numpy(features[:n_train]), torch.from_numpy(target[:n_train])
x_test, y_test = torch.from_numpy(features[n_train:]), torch.from_numpy(target[n_train:])


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden1 = nn.Linear(10, 32)
        self.hidden2 = nn.Linear(32, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.tanh(self.hidden1(x))
        x = torch.tanh(self.hidden2(x))
        return self.out(x)


model = Regressor()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
mse = nn.MSELoss()
batch_size = 25

for epoch in range(12):
    perm = torch.randperm(n_train)
    epoch_loss = 0.0
    for start in range(0, n_train, batch_size):
        index = perm[start:start + batch_size]
        xb, yb = x_train[index], y_train[index]
        pred = model(xb)
        loss = mse(pred.squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        epoch_loss += loss.item() * len(index)
    if epoch % 3 == 2:
        with torch.no_grad():
            test_loss = mse(model(x_test).squeeze(1), y_test).item()
        print("epoch", epoch + 1, "train", round(epoch_loss / n_train, 4), "test", round(test_loss, 4))
