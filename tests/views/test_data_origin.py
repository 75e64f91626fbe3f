"""The line where data is made, found from the line that builds a loader or calls a model."""

from __future__ import annotations

import ast
import textwrap

import pytest

from trueline.views.data_origin import _Search

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


SPLITS = {
    "a split": """
        train, valid = random_split(data, [900, 100])  # made
        loader = DataLoader(valid, batch_size=4)  # used
    """,
    "a split, then tensors of a function's making": """
        x_train, x_valid, y_train, y_valid = train_test_split(x, y)  # made
        loader = DataLoader(tensors(x_valid, y_valid), batch_size=4)  # used
    """,
    "a slice": """
        x_valid = x[900:]  # made
        print(model(x_valid))  # used
    """,
    "a slice on the line itself": """
        x = torch.tensor(table)
        loader = DataLoader(TensorDataset(x[900:], y[900:]))  # used # made
    """,
    "a sample of a table": """
        held = frame.sample(frac=0.2)  # made
        rows = torch.tensor(held.values)
        loader = DataLoader(Rows(rows))  # used
    """,
}


def lines_of(script: str) -> tuple[ast.Module, int, int]:
    text = textwrap.dedent(script)
    lines = text.splitlines()
    used = next(number for number, line in enumerate(lines, 1) if "# used" in line)
    made = next(number for number, line in enumerate(lines, 1) if line.endswith("# made"))
    return ast.parse(text), used, made


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_data_is_followed_to_where_it_is_made(script: str) -> None:
    tree, used, made = lines_of(script)
    assert _Search(tree, inside=True).origin_of_line(used) == made


@pytest.mark.parametrize("script", SPLITS.values(), ids=SPLITS.keys())
def test_data_is_followed_to_where_it_was_chosen(script: str) -> None:
    tree, used, made = lines_of(script)
    assert _Search(tree, inside=False).selection_of_line(used) == made


def test_data_that_nobody_chose_from() -> None:
    script = "x = load()\nloader = DataLoader(TensorDataset(x, y))"
    assert _Search(ast.parse(script), inside=False).selection_of_line(2) is None


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
