import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

NUM_CLASSES, WIDTH = 6, 12
PIXEL_MEAN, PIXEL_STD = 0.5, 0.22


class NoisyPatterns(Dataset):
    """One of six colour patterns below a lot of noise."""

    def __init__(self, size, seed):
        templates = np.random.default_rng(99).uniform(0, 255, (NUM_CLASSES, 3, 16, 16))
        rng = np.random.default_rng(seed)
        self.classes = rng.integers(0, NUM_CLASSES, size)
        noise = rng.uniform(0, 255, (size, 3, 16, 16))
        self.pixels = (0.4 * templates[self.classes] + 0.6 * noise).astype(np.uint8)

    def __len__(self):
        return len(self.classes)

    def __getitem__(self, index):
        image = torch.from_numpy(self.pixels[index]).to(torch.float32).div(255)
        return (image - PIXEL_MEAN) / PIXEL_STD, int(self.classes[index])


def norm(channels):
    return nn.BatchNorm2d(channels, eps=1e-5, momentum=0.1)


def conv(c_in, c_out, size, stride=1):
    layer = nn.Conv2d(c_in, c_out, size, stride, bias=False)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


def padded_conv(c_in, c_out, stride=1):
    return [nn.ZeroPad2d((1, 1, 1, 1)), conv(c_in, c_out, 3, stride)]


class Residual(nn.Module):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        same = stride == 1 and c_in == c_out
        self.skip = nn.Identity() if same else nn.Sequential(conv(c_in, c_out, 1, stride), norm(c_out))
        self.residual = nn.Sequential(
            *padded_conv(c_in, c_out, stride), norm(c_out), nn.ReLU(), *padded_conv(c_out, c_out), norm(c_out)
        )
        self.activation = nn.ReLU()

    def forward(self, x):
        out = self.residual(x)
        out = out + self.skip(x)
        return self.activation(out)


def build_model():
    stem = nn.Sequential(*padded_conv(3, WIDTH), norm(WIDTH), nn.ReLU())
    blocks = [Residual(WIDTH, WIDTH), Residual(WIDTH, WIDTH), Residual(WIDTH, 2 * WIDTH, 2), Residual(2 * WIDTH, 2 * WIDTH)]
    classifier = nn.Linear(2 * WIDTH, NUM_CLASSES, bias=True)
    return nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), classifier)


def train_epoch(net, loader, loss_fn, optimizer, schedule):
    net.train()
    losses = []
    for batch, target in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_fn(net(batch), target)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.5)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    return np.mean([(net(batch).argmax(-1) == target).float().mean().item() for batch, target in loader])


if __name__ == "__main__":
    torch.manual_seed(7)
    net = build_model()
    training = DataLoader(NoisyPatterns(1024, 1), batch_size=32, shuffle=True)
    testing = DataLoader(NoisyPatterns(256, 2), batch_size=64)
    loss_fn = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=2e-3, nesterov=False)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 30, gamma=0.2)
    for epoch in range(2):
        losses = train_epoch(net, training, loss_fn, optimizer, schedule)
        print(epoch, *(f"{loss:.3f}" for loss in losses[::10]), "accuracy", evaluate(net, testing))
