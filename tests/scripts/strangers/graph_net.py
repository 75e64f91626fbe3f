"""Two-layer GCN in plain torch: semi-supervised node classification on a stochastic block model."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
N, C = 120, 3
labels = torch.arange(N) % C
same = labels[:, None] == labels[None, :]
prob = torch.where(same, 0.15, 0.01)
upper = torch.triu(torch.rand(N, N) < prob, diagonal=1).float()
A = upper + upper.t() + torch.eye(N)
deg = A.sum(1)
A_hat = A / torch.sqrt(deg[:, None] * deg[None, :])
X = torch.randn(N, 16) + 0.5 * F.one_hot(labels, 16)

perm = torch.randperm(N)
train_idx, val_idx = perm[:40], perm[40:]


class GraphConvolution(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fin, fout))
        self.bias = nn.Parameter(torch.zeros(fout))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


model = GCN(16, 24, C, 0.4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
for epoch in range(60):
    model.train()
    optimizer.zero_grad()
    output = model(X, A_hat)
    loss_train = F.nll_loss(output[train_idx], labels[train_idx])
    loss_train.backward()
    optimizer.step()
    if epoch % 15 == 0 or epoch == 59:
        model.eval()
        with torch.no_grad():
            output = model(X, A_hat)
        acc_val = (output[val_idx].argmax(1) == labels[val_idx]).float().mean()
        print(
            "Epoch: {:04d}".format(epoch + 1),
            "loss_train: {:.4f}".format(loss_train.item()),
            "acc_val: {:.4f}".format(acc_val.item()),
        )
