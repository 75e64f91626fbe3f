"""PyTorch keeps the contract of adapters."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.utils.data import DataLoader, TensorDataset

from trueline.testing import AdapterContract, Plan
from trueline.testing.contract import BATCH, RATE


class Net(nn.Module):
    def __init__(self, softmax: bool) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 3)
        self.softmax = softmax

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.second(F.relu(self.first(x)))
        return torch.softmax(scores, dim=1) if self.softmax else scores


class PyTorchTraining:
    framework = "pytorch"

    def __call__(self, plan: Plan) -> list[float]:
        if plan.seed is not None:
            torch.manual_seed(plan.seed)
        x, y = plan.data()
        loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y).long()), batch_size=BATCH)
        model = Net(plan.softmax)
        model.load_state_dict({name: torch.from_numpy(values) for name, values in plan.weights().items()})
        model.first.requires_grad_(not plan.freeze_first)
        model.train()
        optimizer = torch.optim.SGD([part for part in model.parameters() if part.requires_grad], lr=RATE)
        losses = []
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            if plan.clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), plan.clip)
            optimizer.step()
            losses.append(loss.item())
        if plan.evaluate:
            model.eval()
            with torch.no_grad():
                model(torch.from_numpy(x[:BATCH]))
        return losses


class TestContract(AdapterContract):
    training = PyTorchTraining()
