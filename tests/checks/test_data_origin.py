"""The line where data is made, found from the line that builds a loader or calls a model."""

from __future__ import annotations

import ast
import textwrap

import pytest

from trueline.checks._data_origin import _Search

SCRIPTS = {
    "a tensor of its own": """
        x = torch.tensor(table)  # made
        loader = DataLoader(TensorDataset(x, y), batch_size=4)  # used
    """,
    "the last of several assignments": """
        x = read()
        x = torch.tensor(x / 255)  # made
        loader = DataLoader(TensorDataset(x[:90], y[:90]))  # used
        x = None
    """,
    "the reading of a dataset": """
        class Frames(Dataset):
            def __getitem__(self, index):
                frame = torch.from_numpy(self.frames[index]).float()  # made
                return frame, self.labels[index]
        def main():
            loader = DataLoader(Frames(1600), batch_size=32)  # used
    """,
    "a dataset that hands on what it holds": """
        class Rows(Dataset):
            def __getitem__(self, index):
                return self.rows[index]
        train = Rows(table)  # made
        loader = DataLoader(dataset=train)  # used
    """,
    "a part of a dataset": """
        data = TensorDataset(torch.tensor(table), labels)  # made
        train, held = random_split(data, [80, 20])
        loader = DataLoader(train, shuffle=True)  # used
    """,
    "a batch that is cut by hand": """
        inputs = torch.from_numpy((readings - mean) / std).float()  # made
        for chosen in batches:
            loss = F.mse_loss(model(inputs[chosen]), targets[chosen])  # used
    """,
    "an attribute": """
        class Trainer:
            def __init__(self):
                self.x = torch.tensor(table)  # made
            def step(self, rows):
                return self.net(self.x[rows])  # used
    """,
}


def lines_of(script: str) -> tuple[ast.Module, int, int]:
    text = textwrap.dedent(script)
    lines = text.splitlines()
    used = next(number for number, line in enumerate(lines, 1) if line.endswith("# used"))
    made = next(number for number, line in enumerate(lines, 1) if line.endswith("# made"))
    return ast.parse(text), used, made


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_data_is_followed_to_where_it_is_made(script: str) -> None:
    tree, used, made = lines_of(script)
    assert _Search(tree, inside=True).origin_of_line(used) == made


def test_a_dataset_is_not_looked_into_when_its_preparation_is_in_question() -> None:
    tree, used, _ = lines_of(SCRIPTS["the reading of a dataset"])
    assert _Search(tree, inside=False).origin_of_line(used) == used


@pytest.mark.parametrize(
    "script",
    [
        "def evaluate(model, x):\n    return model(x)",
        "for x, y in stream:\n    model(x)",
        "Trainer(DataLoader(train), DataLoader(valid))",
        "model()",
    ],
)
def test_what_cannot_be_followed_is_left(script: str) -> None:
    assert _Search(ast.parse(script), inside=True).origin_of_line(len(script.splitlines())) is None
