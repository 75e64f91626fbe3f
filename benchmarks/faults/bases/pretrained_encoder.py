"""Denoising autoencoder first, then a classifier that starts from its encoder."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
bunch = load_digits()
x = torch.tensor(bunch.data / 16.0, dtype=torch.float32)
y = torch.tensor(bunch.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]
x_train, y_train, x_test, y_test = x[:1400], y[:1400], x[1400:], y[1400:]


def make_encoder():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = make_encoder()
        self.decoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, noisy):
        return self.decoder(self.encoder(noisy))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = make_encoder()
        self.head = nn.Linear(32, 10)

    def forward(self, images):
        return self.head(self.encoder(images))


def pretrain(epochs):
    autoencoder = Autoencoder()
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for (clean,) in DataLoader(TensorDataset(x_train), batch_size=50, shuffle=True):
            noisy = clean + 0.1 * torch.randn_like(clean)
            loss = nn.functional.mse_loss(autoencoder(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("pretraining", epoch, round(loss.item(), 4))
    return autoencoder.encoder.state_dict()


weights = pretrain(4)
classifier = Classifier()
classifier.encoder.load_state_dict(weights)
finetune = torch.optim.Adam(classifier.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
for epoch in range(5):
    classifier.train()
    for images, labels in loader:
        finetune.zero_grad()
        loss = loss_fn(classifier(images), labels)
        loss.backward()
        finetune.step()
    classifier.eval()
    with torch.no_grad():
        accuracy = (classifier(x_test).argmax(1) == y_test).float().mean().item()
    print("fine-tuning", epoch, round(loss.item(), 4), round(accuracy, 4))
