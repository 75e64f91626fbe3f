import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn

np.random.seed(0)
torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X = scale(X).astype("float32")
sign = np.where(y == 1, 1.0, -1.0).astype("float32")
split = np.random.permutation(len(X))
tr, te = split[:450], split[450:]

ds = torch.utils.data.TensorDataset(torch.from_numpy(X[tr]), torch.from_numpy(sign[tr]))
dl = torch.utils.data.DataLoader(ds, batch_size=30, shuffle=True)
clf = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(clf.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(20):
    for xb, tb in dl:
        opt.zero_grad()
        loss = criterion(clf(xb).squeeze(1), tb)  # <- fault
        loss.backward()
        opt.step()
    with torch.no_grad():
        pred = torch.sign(clf(torch.from_numpy(X[te])).squeeze(1)).numpy()
    print(epoch, loss.item(), (pred == sign[te]).mean())
