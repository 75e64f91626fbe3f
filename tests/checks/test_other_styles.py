"""Small scripts in styles that the cases do not have: each fault is named as the cause on its line, each look-alike is quiet."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from case_runner import assert_cause, assert_found, assert_nothing_found, diagnose

DIGITS = """
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(3)
digits = load_digits()
x, y = torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]
"""

FAULTS = {
    ("mp.03", "a clip of the script's own"): """
        def limit(parameters, most=1.0):
            gradients = [parameter.grad for parameter in parameters]
            norm = torch.sqrt(sum((gradient ** 2).sum() for gradient in gradients))
            for gradient in gradients:
                gradient.mul_(most / (norm + 1e-6))
        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
        for inputs, labels in DataLoader(TensorDataset(x, y), 40, shuffle=True):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                scores = net(inputs)
            scaler.scale(F.cross_entropy(scores.float(), labels)).backward()  # <- fault
            limit(net.parameters())
            scaler.step(optimizer)
            scaler.update()
    """,
    ("cg.01", "a BatchNorm that is a default argument"): """
        class Unit(nn.Module):
            def __init__(self, norm=nn.BatchNorm1d(64)):  # <- fault
                super().__init__()
                self.norm, self.linear = norm, nn.Linear(64, 64)
            def forward(self, x):
                return x + F.relu(self.linear(self.norm(x)))
        net = nn.Sequential(nn.Flatten(), *[Unit() for _ in range(3)], nn.Linear(64, 10))
        optimizer = torch.optim.Adam(net.parameters())
        for inputs, labels in DataLoader(TensorDataset(x, y), 30, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
    """,
    ("cg.03", "a view where samples and features are as many"): """
        class Rows(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj, self.lstm, self.out = nn.Linear(8, 32), nn.LSTM(32, 24), nn.Linear(24, 10)
            def forward(self, x):
                samples, steps, _ = x.shape
                x = torch.relu(self.proj(x)).view(steps, samples, -1)  # <- fault
                return self.out(self.lstm(x)[0][-1])
        net = Rows()
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        for inputs, labels in DataLoader(TensorDataset(x, y), 32, shuffle=True, drop_last=True):
            optimizer.zero_grad()
            F.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
    """,
    ("cg.04", "log-softmax over the positions of a map"): """
        net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 1))
        bright = (x > 0.3).long() + (x > 0.7).long()
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        for inputs, labels in DataLoader(TensorDataset(x.unsqueeze(1), bright), 32, shuffle=True):
            optimizer.zero_grad()
            scores = F.log_softmax(net(inputs), dim=-1)  # <- fault
            F.nll_loss(scores, labels).backward()
            optimizer.step()
    """,
    ("cg.03", "samples torn apart on the way into a recurrent layer"): """
        class Columns(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.gru, self.out = nn.Conv2d(1, 6, 3, padding=1), nn.GRU(24, 24), nn.Linear(24, 10)
            def forward(self, x):
                maps = F.max_pool2d(self.conv(x), (2, 1))
                b, c, h, w = maps.shape
                return self.out(self.gru(maps.view(w, b, c * h))[0][-1])  # <- fault
        net = Columns()
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        for inputs, labels in DataLoader(TensorDataset(x.unsqueeze(1), y), 50, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
    """,
}
HEALTHY = {
    "two tasks on the same samples": """
        body = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU())
        for labels_of, classes in ((y, 10), (y % 2, 2)):
            net = nn.Sequential(body, nn.Linear(64, classes))
            optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
            loader = DataLoader(TensorDataset(x, labels_of), 60, shuffle=True)
            for epoch in range(3):
                for inputs, labels in loader:
                    optimizer.zero_grad()
                    F.cross_entropy(net(inputs), labels).backward()
                    optimizer.step()
    """,
    "clipped after unscaling, by hand": """
        def limit(parameters, most=0.5):
            gradients = [parameter.grad for parameter in parameters]
            norm = torch.sqrt(sum((gradient ** 2).sum() for gradient in gradients))
            for gradient in gradients:
                gradient.mul_(torch.clamp(most / (norm + 1e-6), max=1.0))
        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
        for inputs, labels in DataLoader(TensorDataset(x, y), 40, shuffle=True):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16):
                scores = net(inputs)
            scaler.scale(F.cross_entropy(scores.float(), labels)).backward()
            scaler.unscale_(optimizer)
            limit(net.parameters())
            scaler.step(optimizer)
            scaler.update()
    """,
    "heads split and joined by views": """
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.take, self.qkv, self.out = nn.Linear(8, 32), nn.Linear(32, 96), nn.Linear(32, 10)
            def forward(self, x):
                b, t, _ = x.shape
                q, k, v = self.qkv(F.relu(self.take(x))).view(b, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
                joined = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, 32)
                return self.out(joined.mean(1))
        net = Attention()
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        for epoch in range(2):
            for inputs, labels in DataLoader(TensorDataset(x, y), 32, shuffle=True):
                optimizer.zero_grad()
                F.cross_entropy(net(inputs), labels).backward()
                optimizer.step()
    """,
}


def written(folder: Path, body: str) -> Path:
    path = folder / "train.py"
    path.write_text(DIGITS + textwrap.dedent(body))
    return path


@pytest.mark.parametrize(
    ("check_id", "body"), [(key[0], body) for key, body in FAULTS.items()], ids=[" ".join(k) for k in FAULTS]
)
def test_fault_is_the_cause_on_its_line(tmp_path: Path, check_id: str, body: str) -> None:
    path = written(tmp_path, body)
    diagnosis = diagnose(path, tmp_path)
    assert_found(diagnosis, check_id, path)
    assert_cause(diagnosis, check_id)


@pytest.mark.parametrize("body", HEALTHY.values(), ids=HEALTHY.keys())
def test_look_alike_is_quiet(tmp_path: Path, body: str) -> None:
    assert_nothing_found(diagnose(written(tmp_path, body), tmp_path))
