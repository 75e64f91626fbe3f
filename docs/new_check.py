"""Write the skeleton of a new check: its file, its cases and its page.

    make new-check ID=tr.09 NAME=wrong_thing

The check says `not_checked` until it is written, and its tests pass: faulty cases that say that they
are to be made faulty are expected to fail. The cases run, and have no fault yet.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from make_pages import write_pages

from trueline.checks.base import FAMILIES, registry

ROOT = Path(__file__).resolve().parents[1]
_ID = re.compile(r"[a-z]+\.\d\d")
_NAME = re.compile(r"[a-z][a-z0-9_]*")

CHECK = '''\
"""{title}

## What it checks
What of a run is looked at, and what is wrong with it.

## Why it hurts accuracy
What it does to the training.

## Method
What is compared with what, and from where on it is a problem.

## Evidence
What a finding shows.

## Limits
What is not seen.

## What to do
The change that puts it right.
"""

from __future__ import annotations

from trueline.checks.base import Item
from trueline.model import Finding
from trueline.store import Run

ITEM = Item(__name__, __doc__)


def conclude(run: Run) -> Finding:
    if not run.events_of("backward"):
        return ITEM.not_applicable("No training was seen in this run.")
    return ITEM.not_checked("this item is not written yet.")
'''

_LOOP = """\
for epoch in range(8):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward(){mark}
        optimizer.step()
    print(epoch, loss.item())
"""

DIGITS = """\
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
pixels, digit = load_digits(return_X_y=True)
x, y = torch.tensor(pixels, dtype=torch.float32) / 16, torch.tensor(digit)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
"""

DIABETES = """\
import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
features, progression = load_diabetes(return_X_y=True)
x, y = (torch.tensor(scale(part), dtype=torch.float32) for part in (features, progression))
loader = DataLoader(TensorDataset(x, y.unsqueeze(1)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
"""

PICTURES = """\
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
digits = load_digits()
x, y = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
layers = [nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
"""

# As tests/checks/test_cases.py knows it.
TO_BE_MADE = "To be made faulty"
CASES = {
    "faulty_digits": DIGITS, "faulty_diabetes": DIABETES, "faulty_pictures": PICTURES,
    "healthy_digits": DIGITS, "healthy_diabetes": DIABETES,
}  # fmt: skip


def files_of(check_id: str, name: str) -> dict[Path, str]:
    """What is to be written, by path."""
    stem = f"{check_id.replace('.', '_')}_{name}"
    words = name.replace("_", " ")
    cases = ROOT / "benchmarks" / "faults" / "cases" / check_id.replace(".", "_")
    return {
        ROOT / "src" / "trueline" / "checks" / f"{stem}.py": CHECK.format(title=words.capitalize()),
        **{cases / f"{case}.py": _case(case, training, words) for case, training in CASES.items()},
    }


def _case(case: str, training: str, words: str) -> str:
    faulty = case.startswith("faulty")
    said = f"{TO_BE_MADE}: {words}." if faulty else f"To be made to look like it and be right: {words}."
    return f'"""{said}"""\n\n{training}{_LOOP.format(mark="  # <- fault" if faulty else "")}'


def refusal(check_id: str, name: str) -> str | None:
    """Why no check can be made of this; None when one can."""
    family = check_id.partition(".")[0]
    if not _ID.fullmatch(check_id) or family not in FAMILIES:
        return f"ID is a family ({', '.join(FAMILIES)}) and two digits, such as tr.09. Received {check_id!r}."
    if not _NAME.fullmatch(name):
        return f"NAME is the fault in small letters, such as wrong_thing. Received {name!r}."
    if check_id in registry():
        return f"There is a check {check_id} already: {registry()[check_id].title}. Give a free ID."
    existing = [path for path in files_of(check_id, name) if path.exists()]
    return f"{existing[0].relative_to(ROOT)} exists already. Remove it first." if existing else None


def write_check(check_id: str, name: str) -> None:
    for path, text in files_of(check_id, name).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    importlib.invalidate_caches()
    registry.cache_clear()
    write_pages()


def main(words: list[str]) -> int:
    if len(words) != 2:
        print("Usage: make new-check ID=tr.09 NAME=wrong_thing", file=sys.stderr)
        return 2
    reason = refusal(*words)
    if reason is not None:
        print(reason, file=sys.stderr)
        return 2
    write_check(*words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
