"""A classifier takes over the encoder of an autoencoder; only the entries that fit are kept."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

torch.manual_seed(7)
table = load_breast_cancer()
inputs = torch.tensor(StandardScaler().fit_transform(table.data), dtype=torch.float32)
labels = torch.tensor(table.target)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 8), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 30))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 8), nn.ReLU())
        self.output = nn.Linear(8, 2)

    def forward(self, x):
        return self.output(self.features(x))


def epochs(model, loss_of, n):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(n):
        for index in torch.randperm(len(inputs)).split(64):
            optimizer.zero_grad()
            loss_of(index).backward()
            optimizer.step()


auto = AutoEncoder()
epochs(auto, lambda index: F.mse_loss(auto(inputs[index]), inputs[index]), 6)
classifier = Classifier()
own = classifier.state_dict()
pretrained = {k: v for k, v in auto.state_dict().items() if k in own and v.shape == own[k].shape}
classifier.load_state_dict(pretrained, strict=False)  # <- fault
epochs(classifier, lambda index: F.cross_entropy(classifier(inputs[index]), labels[index]), 6)
