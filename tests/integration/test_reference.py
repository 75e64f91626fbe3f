"""A script beside its reference: where they part, and that faithful copies do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from integration.commands import EXAMPLES, TRUELINE, run

from trueline.store import Run, read_tensors

REFERENCE = """
import torch
from torch import nn

{precision}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 24)
        self.norm = nn.LayerNorm(24)
        self.drop = nn.Dropout(0.3)
        self.fc2 = nn.Linear(24, 3)

    def forward(self, x):
        return self.fc2(self.drop(torch.tanh(self.norm(self.fc1(x)))))


torch.manual_seed(1)
x = torch.randn(240, 12)
y = x[:, :3].argmax(1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=24, shuffle=True)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
for epoch in range(3):
    for a, b in loader:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=HALF):
            loss = nn.functional.cross_entropy(net(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
# The same training, written by someone else: other names, other nesting, other order of construction, other batches.
REFACTOR = """
import torch
import torch.nn.functional as F

{precision}
class Body(torch.nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.scale = torch.nn.LayerNorm(width{eps})
        self.enter = torch.nn.Linear(inputs, width)

    def forward(self, x):
        return torch.tanh(self.scale(self.enter(x)))


def main():
    torch.manual_seed(7)
    inputs = torch.randn(240, 12){scale}
    labels = inputs[:, :3].argmax(1)
    model = torch.nn.Sequential(Body(12, 24), torch.nn.Dropout({drop}), torch.nn.Linear(24, 3))
    {init}
    adam = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05{optimizer})
    for _ in range(3):
        order = {order}
        for rows in order.split(24):
            adam.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=HALF):
                loss = F.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            adam.step()


main()
"""


# An average of the weights, evaluated beside the model.
AVERAGED = """
            with torch.no_grad():
                for kept, new in zip(averaged.parameters(), model.parameters()):
                    kept.lerp_(new, 0.1)
                averaged.eval()
                averaged(inputs[:24])
"""


def compared(folder: Path, mine: str, reference: str, *options: str) -> dict[str, Any]:
    found = folder / "found.json"
    command = ["diagnose", mine, "--reference", reference, "--json", str(found), *options]
    # Seven runs of scripts, some of them of MindSpore, on machines that have other things to do.
    finished = run([*TRUELINE, *command], folder, folder / "runs", longest=600)
    assert found.is_file(), f"exit {finished.returncode}:\n{finished.stdout}\n{finished.stderr}"
    diagnosis: dict[str, Any] = json.loads(found.read_text())
    assert finished.returncode == (diagnosis["verdict"]["cause"] is not None), diagnosis["verdict"]
    if diagnosis["comparison"]["first_divergence"] is None:
        # Some of the scripts draw numbers that they do not seed.
        assert diagnosis["verdict"]["cause"] in (None, "tr.07"), diagnosis["verdict"]
    comparison: dict[str, Any] = diagnosis["comparison"]
    if comparison["first_divergence"] is not None:
        (item,) = [each for each in diagnosis["checklist"] if each["id"] == diagnosis["verdict"]["cause"]]
        assert item["conclusion"] == "problem_found", item
    return comparison


PARTS = {"eps": "", "drop": "0.3", "optimizer": "", "scale": "", "init": "", "order": "torch.randperm(240)"}


def scripts(folder: Path, *, half: bool = False, **changed: str) -> tuple[str, str]:
    precision = f"HALF = {half}\n"
    (folder / "ref.py").write_text(REFERENCE.format(precision=precision))
    (folder / "mine.py").write_text(REFACTOR.format(precision=precision, **(PARTS | changed)))
    return "mine.py", "ref.py"


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_faithful_refactor_does_not_part(tmp_path: Path, half: bool) -> None:
    found = compared(tmp_path, *scripts(tmp_path, half=half), "--write-map", "map.json")
    assert found["first_divergence"] is None, found["first_divergence"]
    assert (found["first_step_loss_differs"], found["second_step_loss_differs"], found["bifurcation_step"]) == (
        False,
        False,
        None,
    )
    assert json.loads((tmp_path / "map.json").read_text()) == {
        "model.0.enter.weight": "net.fc1.weight",
        "model.0.enter.bias": "net.fc1.bias",
        "model.0.scale.weight": "net.norm.weight",
        "model.0.scale.bias": "net.norm.bias",
        "model.2.weight": "net.fc2.weight",
        "model.2.bias": "net.fc2.bias",
    }


@pytest.mark.parametrize("eps", ["", ", eps=1e-3"], ids=["faithful", "eps"])
def test_a_copy_for_averages_of_the_weights_takes_no_part(tmp_path: Path, eps: str) -> None:
    mine, reference = scripts(tmp_path, eps=eps)
    script = tmp_path / mine
    text = script.read_text(encoding="utf-8")
    text = text.replace("import torch\n", "import copy\nimport torch\n", 1)
    text = text.replace("    adam = ", "    averaged = copy.deepcopy(model)\n    adam = ", 1)
    text = text.replace("            adam.step()\n", f"            adam.step()\n{AVERAGED}", 1)
    script.write_text(text, encoding="utf-8")
    told = compared(tmp_path, mine, reference)
    assert not told["unmatched"]
    found = told["first_divergence"]
    assert (None if found is None else (found["phase"], found["module"])) == (("forward", "model.0.scale") if eps else None)


def test_other_eps_of_a_norm(tmp_path: Path) -> None:
    found = compared(tmp_path, *scripts(tmp_path, eps=", eps=1e-2"))
    parted = found["first_divergence"]
    assert (parted["step"], parted["phase"], parted["module"], parted["reference_module"]) == (0, "forward", "0.scale", "norm")
    assert "eps" in parted["cause"]
    assert "LayerNorm" in (tmp_path / "mine.py").read_text().splitlines()[parted["location"]["line"] - 1]
    assert found["first_step_loss_differs"]


def test_other_eps_of_the_optimizer(tmp_path: Path) -> None:
    found = compared(tmp_path, *scripts(tmp_path, optimizer=", eps=1e-3"))
    parted = found["first_divergence"]
    assert (parted["step"], parted["phase"], parted["module"]) == (0, "update", None)
    assert "eps" in parted["cause"]
    assert (found["first_step_loss_differs"], found["second_step_loss_differs"]) == (False, True)


@pytest.mark.parametrize(
    ("changed", "phase", "module", "words"),
    [
        ({"scale": " * 3 + 1"}, "data", None, "scaled otherwise"),
        ({"order": "torch.arange(240)"}, "data", None, "not shuffled"),
        ({"init": "torch.nn.init.normal_(model[0].enter.weight, std=0.01)"}, "init", "0.enter", "std 0.0"),
    ],
    ids=["scale", "order", "init"],
)
def test_what_alignment_hides_is_told(
    tmp_path: Path, changed: dict[str, str], phase: str, module: str | None, words: str
) -> None:
    found = compared(tmp_path, *scripts(tmp_path, **changed))
    parted = found["first_divergence"]
    assert (parted["phase"], parted["module"]) == (phase, module), parted
    assert words in parted["cause"]
    assert found["first_step_loss_differs"] is False


def test_other_dropout_is_told_though_it_is_off(tmp_path: Path) -> None:
    parted = compared(tmp_path, *scripts(tmp_path, drop="0.6"))["first_divergence"]
    assert parted is not None
    assert parted["module"] == "1"
    assert "0.6" in parted["cause"]


ATTENTION = """
import torch as th
from torch.nn import GRU, Linear, Module, Parameter, functional as fn


class Attend(Module):
    def __init__(self, width):
        super().__init__()
        self.probe = Parameter(th.randn(width) / width**0.5)

    def forward(self, states):
        weights = fn.softmax(th.einsum("btd,d->bt", states, self.probe), -1)
        return th.einsum("bt,btd->bd", weights, states)


class Tagger(Module):
    def __init__(self, width=16):
        super().__init__()
        self.rnn = GRU(5, width, batch_first=True)
        self.pool = Attend(width)
        self.out = Linear(width, 2)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(fn.elu(self.pool(states)))


th.manual_seed(0)
model = Tagger()
optimizer = th.optim.RMSprop(model.parameters(), lr=0.01)
generator = th.Generator().manual_seed(3)
for step in range(12):
    x = th.randn(40, 9, 5, generator=generator)
    optimizer.zero_grad(set_to_none=True)
    fn.cross_entropy(model(x), (x[..., 0].sum(1) > 0).long()).backward()
    optimizer.step()
"""
# The parameter is the model's own, and sums are written otherwise.
ATTENTION_REWRITTEN = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.classify = nn.Sequential(nn.ELU(alpha={alpha}), nn.Linear(width, 2))
        self.query = nn.Parameter(torch.zeros(width).normal_(std=width**-0.5))
        self.reader = nn.GRU(5, width, batch_first=True)

    def forward(self, series):
        states = self.reader(series)[0]
        weights = (states @ self.query).softmax(dim=1).unsqueeze(-1)
        return self.classify((weights * states).sum(1))


torch.manual_seed(11)
net = Net()
optimizer = torch.optim.RMSprop(net.parameters(), lr=0.01)
generator = torch.Generator().manual_seed(3)
for step in range(12):
    series = torch.randn(40, 9, 5, generator=generator)
    label = (series[:, :, 0].sum(1) > 0).long()
    loss = nn.functional.cross_entropy(net(series), label)
    net.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_attention_written_with_other_sums(tmp_path: Path, alpha: float) -> None:
    (tmp_path / "ref.py").write_text(ATTENTION)
    (tmp_path / "mine.py").write_text(ATTENTION_REWRITTEN.format(alpha=alpha))
    found = compared(tmp_path, "mine.py", "ref.py")
    parted = found["first_divergence"]
    assert [each["subject"] for each in found["differences"]] == ["seed"]
    if alpha == 1.0:
        assert parted is None, parted
        return
    assert (parted["step"], parted["phase"], parted["module"], parted["item"]) == (0, "forward", "classify.0", "api.01")
    assert parted["cause"] == "`elu` is computed with alpha 0.5, in the reference with alpha 1."
    assert "ELU" in parted["location"]["source"]


JOINED = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x):
        z = self.norm(x)
        return x + self.attention(z, z, z, need_weights=False)[0]


torch.manual_seed(0)
x = torch.randn(120, 6, 8)
y = x.sum((1, 2)).sign().clamp(min=0).long()
net = nn.Sequential(Block(8), Block(8), nn.Flatten(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=20, shuffle=True)
for epoch in range(2):
    for a, b in loader:
        loss = nn.functional.cross_entropy(net(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
# Three projections for one, batches drawn by hand after the model has been called, a loss of its own.
SPLIT = """
import torch
import torch.nn.functional as F


class Attention(torch.nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.to_value = torch.nn.Linear(width, width)
        self.to_key = torch.nn.Linear(width, width)
        self.to_query = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.to_query, self.to_key, self.to_value))
        scores = q @ k.transpose(-2, -1) * {scale}
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Model(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(2))
        self.mixers = torch.nn.ModuleList(Attention(width) for _ in range(2))
        self.head = torch.nn.Linear(6 * width, 2)

    def forward(self, x):
        for norm, mixer in zip(self.norms, self.mixers):
            x = x + mixer(norm(x))
        return self.head(x.flatten(1))


def objective(scores, labels):
    return {weight} * -F.log_softmax(scores, 1)[torch.arange(len(labels)), labels].mean()


torch.manual_seed(0)
inputs = torch.randn(120, 6, 8)
labels = inputs.sum((1, 2)).sign().clamp(min=0).long()
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for rows in torch.randperm(120).split(20):
        optimizer.zero_grad()
        objective(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("changed", "phase", "module", "words"),
    [
        ({}, None, None, ""),
        ({"scale": "1.0"}, "forward", "mixers.0", "a scale of 1, in the reference with a scale of 0.5"),
        ({"weight": "3"}, "loss", None, "3 times the reference's"),
    ],
    ids=["faithful", "scale", "weight"],
)
def test_projections_of_attention_apart_and_a_loss_of_its_own(
    tmp_path: Path, changed: dict[str, str], phase: str | None, module: str | None, words: str
) -> None:
    (tmp_path / "ref.py").write_text(JOINED)
    (tmp_path / "mine.py").write_text(SPLIT.format(**{"scale": "0.5", "weight": "1"} | changed))
    found = compared(tmp_path, "mine.py", "ref.py")
    parted = found["first_divergence"]
    if phase is None:
        assert parted is None, parted
        assert {"mixers.0.to_query + mixers.0.to_key + mixers.0.to_value"} <= {pair["mine"] for pair in found["pairs"]}
        assert not [each for each in found["unmatched"] if each.get("parameters")]
        return
    assert (parted["step"], parted["phase"], parted["module"]) == (0, phase, module), parted
    assert words in parted["cause"]
    assert parted["location"] is not None


PATCHES = """
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(120, 2, 4, 4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.mean((1, 2, 3))), batch_size=20, shuffle=True)
{model}
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    for a, b in loader:
        loss = nn.functional.mse_loss(net(a).squeeze(1), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
BY_CONVOLUTION = "net = nn.Sequential(nn.Conv2d(2, 6, 2, stride=2), nn.Flatten(), nn.Linear(24, 1))"
# The channels of a pixel are neighbours here: the same weights mean something else.
BY_MATRIX = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.head = nn.Linear(8, 6), nn.Linear(24, 1)

    def forward(self, x):
        parts = x.unflatten(2, (2, 2)).unflatten(4, (2, 2)).permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
        return self.head(self.patch(parts).transpose(1, 2).flatten(1))


net = Net()
"""


def test_weights_that_mean_something_else_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(PATCHES.format(model=BY_CONVOLUTION))
    (tmp_path / "mine.py").write_text(PATCHES.format(model=BY_MATRIX))
    found = compared(tmp_path, "mine.py", "ref.py")
    assert found["first_divergence"] is None, found["first_divergence"]
    assert found["first_step_loss_differs"] is None
    assert "The weights of patch could not be put in the place of the reference's (0)" in found["verdict"]


AUTOENCODER = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(5)
data = torch.from_numpy(rng.normal(size=(200, 10)).astype(np.float32))
label = torch.from_numpy((rng.random(200) < 0.5).astype(np.int64))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.head = nn.Linear(10, 4), nn.Linear(4, 10), nn.Linear(4, 2)

    def forward(self, x):
        code = torch.tanh(self.enc(x))
        return self.dec(code), self.head(code)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(12):
    rows = torch.randint(0, 200, (25,))
    back, scores = net(data[rows])
    loss = nn.functional.mse_loss(back, data[rows]) + 0.3 * nn.functional.cross_entropy(scores, label[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
AUTOENCODER_PORT = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

rng = np.random.default_rng(6)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.head = nn.Dense(10, 4), nn.Dense(4, 10), nn.Dense(4, 2)

    def construct(self, x):
        code = ops.tanh(self.enc(x))
        return self.dec(code), self.head(code)


data = np.random.default_rng(5).normal(size=(200, 10)).astype(np.float32)
label = rng.integers(0, 2, 200).astype(np.int32)
net = Net()
{training}
for number in range(12):
    rows = rng.integers(0, 200, 25)
    step(ms.Tensor(data[rows]), ms.Tensor(label[rows]))
"""
BY_A_CELL = """
class Objective(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net, self.first, self.second = net, nn.MSELoss(), nn.CrossEntropyLoss()

    def construct(self, x, y):
        back, scores = self.net(x)
        return self.first(back, x) + 0.1 * self.second(scores, y)


step = nn.TrainOneStepCell(Objective(net), nn.SGD(net.trainable_params(), learning_rate=0.05))
step.set_train()
"""
BY_A_FUNCTION = """
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.05)


def objective(x, y):
    back, scores = net(x)
    picked = ops.gather_elements(ops.log_softmax(scores, -1), 1, y.expand_dims(1))
    return ((back - x) ** 2).mean() - 0.3 * picked.mean()


gradients = ms.value_and_grad(objective, None, optimizer.parameters)


def step(x, y):
    optimizer(gradients(x, y)[1])
"""


@pytest.mark.timeout(900)
def test_port_that_differentiates_a_cell_with_its_loss(tmp_path: Path) -> None:
    """Its arguments are found again by the backward pass, and its inputs are targets too."""
    (tmp_path / "ref.py").write_text(AUTOENCODER)
    (tmp_path / "mine.py").write_text(AUTOENCODER_PORT.format(training=BY_A_CELL))
    found = compared(tmp_path, "mine.py", "ref.py")
    parted = found["first_divergence"]
    assert (parted["step"], parted["phase"]) == (0, "loss"), parted
    assert "0.1" in parted["cause"]
    assert "0.3" in parted["cause"]
    assert "self.second(scores, y)" in parted["location"]["source"]


@pytest.mark.timeout(900)
def test_port_with_a_loss_of_its_own(tmp_path: Path) -> None:
    """What the gradient function is given is the batch, targets included."""
    (tmp_path / "ref.py").write_text(AUTOENCODER)
    (tmp_path / "mine.py").write_text(AUTOENCODER_PORT.format(training=BY_A_FUNCTION))
    found = compared(tmp_path, "mine.py", "ref.py")
    assert found["first_divergence"] is None, found["first_divergence"]
    assert found["first_step_loss_differs"] is False
    assert found["bifurcation_step"] is None


TIED = """
import torch
from torch import nn

torch.manual_seed(0)
words = torch.randint(0, 11, (160, 5))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(words, words.roll(1, 1)), batch_size=20, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        {tie}

    def forward(self, x):
        return self.head(torch.tanh(self.body(self.embed(x))))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for a, b in loader:
    loss = nn.functional.cross_entropy(net(a).flatten(0, 1), b.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_weights_that_are_not_tied(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(TIED.format(tie="self.head.weight = self.embed.weight"))
    (tmp_path / "mine.py").write_text(TIED.format(tie=""))
    parted = compared(tmp_path, "mine.py", "ref.py")["first_divergence"]
    assert (parted["phase"], parted["module"], parted["item"]) == ("init", "head", "cg.01")
    assert "head.weight is a parameter of its own; in the reference embed.weight is tied" in parted["cause"]


def test_weights_that_are_tied(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(TIED.format(tie=""))
    (tmp_path / "mine.py").write_text(TIED.format(tie="self.head.weight = self.embed.weight"))
    parted = compared(tmp_path, "mine.py", "ref.py")["first_divergence"]
    assert (parted["phase"], parted["module"], parted["item"]) == ("init", "embed", "cg.01")
    assert "embed.weight is tied: it is used twice; in the reference head.weight is a parameter of its own." in parted["cause"]


def test_an_operation_behind_the_last_layer(tmp_path: Path) -> None:
    """The reference gives what its last layer gave: that is kept once."""
    (tmp_path / "ref.py").write_text(TIED.format(tie=""))
    changed = TIED.format(tie="").replace("return self.head(", "return 2.0 * self.head(")
    (tmp_path / "mine.py").write_text(changed)
    parted = compared(tmp_path, "mine.py", "ref.py")["first_divergence"]
    assert (parted["step"], parted["phase"], parted["module"]) == (0, "forward", "net")
    assert "2.0 * self.head(" in parted["location"]["source"]


VARIATIONAL = """
import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mean, self.spread, self.dec = nn.Linear(12, 8), nn.Linear(8, 3), nn.Linear(8, 3), nn.Linear(3, 12)

    def forward(self, x):
        hidden = torch.tanh(self.enc(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        return self.dec(mean + torch.randn_like(mean) * torch.exp(0.5 * spread)), mean, spread


torch.manual_seed(0)
loader = torch.utils.data.DataLoader(torch.randn(200, 12), batch_size=20, shuffle=True)
net = Coder()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    for x in loader:
        out, mean, spread = net(x + 0.1 * torch.randn_like(x))
        loss = nn.functional.mse_loss(out, x) - 0.005 * (1 + spread - mean**2 - spread.exp()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
VARIATIONAL_PORT = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset


class Model(nn.Cell):
    def __init__(self, wide=8, code=3):
        super().__init__()
        self.body = nn.Dense(12, wide)
        self.to_mean = nn.Dense(wide, code)
        self.to_spread = nn.Dense(wide, code)
        self.back = nn.Dense(code, 12)

    def construct(self, x):
        hidden = ops.tanh(self.body(x))
        mean, spread = self.to_mean(hidden), self.to_spread(hidden)
        return self.back(ops.exp(0.5 * spread) * ops.standard_normal(mean.shape) + mean), mean, spread


rows = np.random.default_rng(1).normal(size=(200, 12)).astype(np.float32)
data = NumpySlicesDataset({"x": rows}, shuffle=True).batch(20)
model = Model()
adam = nn.Adam(model.trainable_params(), 1e-3)


def objective(noisy, clean):
    out, mean, spread = model(noisy)
    return ((out - clean) ** 2).mean() - 0.005 * (1 + spread - mean**2 - spread.exp()).mean()


gradients = ms.value_and_grad(objective, None, adam.parameters)
for epoch in range(2):
    for (batch,) in data.create_tuple_iterator():
        adam(gradients(batch + 0.1 * ops.standard_normal(batch.shape), batch)[1])
"""


@pytest.mark.timeout(900)
def test_noise_is_the_same_on_both_sides(tmp_path: Path) -> None:
    """Drawn by the model and by the script; and eps of MindSpore's Adam is added elsewhere than PyTorch's."""
    (tmp_path / "ref.py").write_text(VARIATIONAL)
    (tmp_path / "mine.py").write_text(VARIATIONAL_PORT)
    found = compared(tmp_path, "mine.py", "ref.py")
    assert found["first_divergence"] is None, found["first_divergence"]
    assert found["first_step_loss_differs"] is False


@pytest.mark.timeout(900)
def test_port_to_mindspore(tmp_path: Path) -> None:
    """The example of the demo."""
    mine, reference = EXAMPLES / "port" / "mixer_mindspore.py", EXAMPLES / "port" / "mixer_pytorch.py"
    found = compared(tmp_path, str(mine), str(reference))
    parted = found["first_divergence"]
    assert (parted["step"], parted["phase"], parted["module"]) == (0, "forward", "body.0.mlp.2")
    assert "tanh" in parted["cause"]
    assert mine.read_text().splitlines()[parted["location"]["line"] - 1].strip() == "nn.GELU(),"
    assert not [each for each in found["unmatched"] if each.get("parameters")]


def test_aligned_run_of_the_same_script_is_the_same(tmp_path: Path) -> None:
    _, reference = scripts(tmp_path)
    runs = tmp_path / "runs"
    run([*TRUELINE, "run", "--name", "first", "--as-reference", "--steps", "12", reference], tmp_path, runs)
    run([*TRUELINE, "run", "--name", "second", "--align-to", "first", "--steps", "12", reference], tmp_path, runs)
    first, second = Run(runs / "first"), Run(runs / "second")
    assert len(first.steps) == 12
    assert [step.loss for step in first.steps] == [step.loss for step in second.steps]
    kept, again = read_tensors(first.directory, 1), read_tensors(second.directory, 1)
    assert kept.keys() == again.keys()
    assert all((kept[name] == again[name]).all() for name in kept)


def test_a_run_without_start_cannot_be_aligned_to(tmp_path: Path) -> None:
    _, reference = scripts(tmp_path)
    runs = tmp_path / "runs"
    run([*TRUELINE, "run", "--name", "plain", "--steps", "2", reference], tmp_path, runs)
    finished = run([*TRUELINE, "run", "--align-to", "plain", reference], tmp_path, runs)
    assert finished.returncode == 2
    assert "--as-reference" in finished.stderr


def test_options_that_need_an_alignment(tmp_path: Path) -> None:
    _, reference = scripts(tmp_path)
    for options in (["--perturb"], ["--map", "map.json"]):
        finished = run([*TRUELINE, "run", *options, reference], tmp_path, tmp_path / "runs")
        assert finished.returncode == 2
        assert "--align-to" in finished.stderr
