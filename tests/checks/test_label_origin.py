"""The line that changes labels, found from the line that builds a loader or calls a model."""

from __future__ import annotations

import ast
import textwrap

import pytest

from trueline.checks.ds_02_wrong_labels.label_origin import LabelSearch

CHANGED = {
    "some rows are written": """
        x, y = load_digits(return_X_y=True)
        y[hit] = (y[hit] + 1) % 10  # changed
        loader = DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), 32)  # used
    """,
    "behind a split": """
        labels[::9] = 0  # changed
        a, b, c, d = train_test_split(data, labels)
        train = TensorDataset(torch.tensor(a), torch.tensor(c).long())
        loader = DataLoader(train, shuffle=True)  # used
    """,
    "in the function that reads them": """
        def read(path):
            table = load(path)
            names = table[:, -1]
            rng.shuffle(names)  # changed
            return table[:, :-1], names
        def main():
            rows, names = read("train.csv")
            loader = DataLoader(TensorDataset(rows, names), 8)  # used
    """,
    "before they are handed to a function": """
        def make_loader(x, y):
            return DataLoader(TensorDataset(x, y), 8)  # used
        target = torch.tensor(table.target)
        target[20:60] += 1  # changed
        loader = make_loader(table.data, target)
    """,
    "inside of a dataset": """
        class Rows(Dataset):
            def __init__(self, rows, labels):
                self.rows, self.labels = rows, labels
                self.labels[bad] = 3  # changed
        loader = DataLoader(Rows(a, b), 8)  # used
    """,
    "made by a dataset": """
        class Scans(Dataset):
            def __init__(self, path):
                self.pictures = read(path)
                self.labels = [int(row[1]) for row in table(path)]  # changed
        loader = DataLoader(Scans("train"), 8)  # used
    """,
    "before a dataset": """
        labels = torch.roll(labels, 1)  # changed
        train = Subset(Rows(a, labels), kept)
        loader = DataLoader(train, 8)  # used
    """,
    "batches by hand": """
        codes[rows] = codes[order]  # changed
        y = torch.tensor(codes)
        for chosen in batches:
            scores = model(x[chosen])  # used
            loss = criterion(scores, y[chosen])
    """,
}
UNCHANGED = {
    "labels as they come": """
        x, y = load_digits(return_X_y=True)
        loader = DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), 32)  # used
    """,
    "only the inputs are written": """
        x[0] = 1
        loader = DataLoader(TensorDataset(x, y), 32)  # used
    """,
    "a dataset from elsewhere": """
        loader = DataLoader(elsewhere.Rows("train"), 32)  # used
    """,
    "a variable made of itself": """
        y = y
        loader = DataLoader(TensorDataset(x, y), 32)  # used
    """,
}


def change_in(script: str) -> tuple[int | None, list[int]]:
    text = textwrap.dedent(script)
    lines = text.splitlines()
    (used,) = [number for number, line in enumerate(lines, 1) if "# used" in line]
    return LabelSearch(ast.parse(text)).line_of_change(used), [n for n, line in enumerate(lines, 1) if "# changed" in line]


@pytest.mark.parametrize("script", CHANGED.values(), ids=CHANGED.keys())
def test_line_that_changes_the_labels(script: str) -> None:
    found, expected = change_in(script)
    assert [found] == expected


@pytest.mark.parametrize("script", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_no_line_where_the_text_shows_no_change(script: str) -> None:
    found, _ = change_in(script)
    assert found is None
