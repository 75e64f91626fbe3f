"""Every format gives the same table, and what cannot be read says why."""

from __future__ import annotations

import gzip
import json
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from trueline.datasets import TableSummary, examine, open_dataset
from trueline.errors import TruelineError

ROWS = [
    {"size": 1.5, "colour": "red", "label": 0},
    {"size": None, "colour": "blue", "label": 1},
    {"size": 2.5, "colour": "red", "label": 0},
    {"size": 2.5, "colour": "red", "label": 0},
    {"size": 3.5, "colour": "blue", "label": 1},
]


def only(path: Path | str, **options: str) -> TableSummary:
    (table,) = open_dataset(str(path), **options)
    return examine(table)


def write_csv(path: Path, delimiter: str = ",") -> Path:
    lines = [delimiter.join("" if value is None else str(value) for value in row.values()) for row in ROWS]
    path.write_text("\n".join([delimiter.join(ROWS[0]), *lines]) + "\n")
    return path


def write(folder: Path, kind: str) -> Path:
    path = folder / f"rows.{kind.partition(' ')[0]}"
    if kind.startswith(("csv", "tsv")):
        return write_csv(path, {"csv": ",", "csv semicolon": ";", "tsv": "\t"}[kind])
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    elif kind == "json":
        path.write_text(json.dumps(ROWS, indent=1))
    else:
        path.write_text(json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}))
    return path


@pytest.mark.parametrize("kind", ["csv", "csv semicolon", "tsv", "parquet", "jsonl", "json", "json columns"])
def test_the_same_rows_in_every_format(tmp_path: Path, kind: str) -> None:
    summary = only(write(tmp_path, kind))
    assert summary.rows == 5
    assert summary.field("size").missing == 1
    assert summary.field("size").first_missing == 1
    assert (summary.field("size").low, summary.field("size").high) == (1.5, 3.5)
    assert summary.label is not None
    assert summary.label.counts == {"0": 3, "1": 2}
    assert summary.duplicates.extra == 1
    assert summary.duplicates.examples == [[2, 3]]


@pytest.mark.parametrize("order", ["C", "F"])
def test_npz_in_blocks(tmp_path: Path, order: str) -> None:
    x = np.asarray(np.random.default_rng(0).normal(size=(1000, 6)), order=order)  # type: ignore[call-overload]
    x[7, 2] = np.nan
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(1000) % 3)
    summary = only(tmp_path / "a.npz")
    assert (summary.field("x[2]").nan, summary.field("x[2]").first_missing) == (1, 7)
    assert summary.field("x[1]").mean == pytest.approx(x[:, 1].mean())
    assert summary.label is not None
    assert summary.label.counts == {"0": 334, "1": 333, "2": 333}


def test_arrays_of_two_lengths_are_two_tables(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x_train=np.zeros((9, 4, 4)), y_train=np.ones(9), x_test=np.zeros((5, 4, 4)), y_test=np.ones(5))
    assert [examine(table).rows for table in open_dataset(str(tmp_path / "a.npz"))] == [9, 5]


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        (np.array([["2020-01-01", "2020-01-02"], ["2020-02-01", "NaT"]], "M8[D]"), {"x[0]", "x[1]"}),
        (np.array([["a", "b"], ["c", "b"]]), {"x[0]", "x[1]"}),
        (np.array([[1 + 2j, 0], [3j, 1]]), {"x.real[0]", "x.real[1]", "x.imag[0]", "x.imag[1]"}),
        (np.array([[["2020-01-01"] * 3] * 2] * 4, "M8[D]"), {"x"}),
    ],
    ids=["times", "texts", "complex", "blocks of times"],
)  # fmt: skip
def test_columns_of_arrays_that_are_no_plain_numbers(tmp_path: Path, values: np.ndarray, fields: set[str]) -> None:
    np.savez(tmp_path / "a.npz", x=values)
    summary = only(tmp_path / "a.npz")
    assert {field.name for field in summary.fields} == fields
    assert summary.rows == len(values)
    assert sum(field.nan for field in summary.fields) == (values.dtype.kind == "M" and values.ndim == 2)


def test_packed_files_give_their_memory_back(tmp_path: Path) -> None:
    """Arrow keeps what is not closed; a folder may hold any number of files."""
    whole = gzip.compress(b"size,label\n" + b"".join(b"%d.5,%d\n" % (n * 7919, n % 3) for n in range(100)))
    path = tmp_path / "a.csv.gz"

    def read(damaged: int) -> None:
        path.write_bytes(whole[:damaged] + bytes([whole[damaged] ^ 255]) + whole[damaged + 1 :])
        with suppress(TruelineError):
            only(path)

    for damaged in range(100):
        read(damaged)
    before = resident()
    for _ in range(5):
        for damaged in range(100):
            read(damaged)
    assert resident() - before < 1 << 20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_words_among_numbers_and_blanks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "age,job\n" + "".join(f"{age}, {job}\n" for age, job in zip(range(40), "abcd" * 10, strict=True)) + "?,?\n  ,NA\n"
    )
    summary = only(path)
    age, job = summary.field("age"), summary.field("job")
    assert (age.words, age.blank, age.type) == ({"?": 1}, 1, "integer")
    assert (job.words, job.doubtful, job.type) == ({"?": 1}, {"NA": 1}, "category")


def test_ids_with_more_digits_than_a_float(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("tweet\n" + "".join(f"{10**17 + each}\n" for each in (1, 2, 3, 5, 5)))
    assert only(path).duplicates.extra == 1


def test_parts_of_one_table(tmp_path: Path) -> None:
    for part in range(3):
        write_csv(tmp_path / f"part{part}.csv")
    summary = only(tmp_path)
    assert summary.rows == 15
    assert summary.duplicates.extra == 11


def test_lines_with_other_numbers_of_fields_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * 30 + "1\n" + "3,4\n" * 30)
    assert only(path).faults == ["1 line does not have the 2 fields of the first line and cannot be read: line 32 has 1."]


def test_images(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for place in range(4):
            Image.fromarray(random.integers(0, 255, (8, 8, 3), np.uint8)).save(tmp_path / name / f"{place}.png")
    content = (tmp_path / "cat" / "0.png").read_bytes()
    (tmp_path / "dog" / "same.png").write_bytes(content)
    (tmp_path / "dog" / "cut.png").write_bytes(content[:120])
    (tmp_path / "dog" / "nothing.png").write_bytes(b"")
    summary = only(tmp_path)
    assert summary.label is not None
    assert summary.label.counts == {"cat": 4, "dog": 7}
    assert summary.duplicates.conflicts == 1
    assert summary.faults[0].startswith("2 images cannot be decoded: dog/cut.png")


def test_python_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "things_of_this_test.py").write_text(
        "import torch\nfrom torch.utils.data import TensorDataset\n"
        "x = torch.randn(30, 3)\nx[4, 1] = float('inf')\n"
        "tensors = TensorDataset(x, torch.arange(30) % 2)\n"
        "def function():\n    return {'x': x.numpy(), 'y': [0, 1] * 15}\n"
        "rows = [{'text': 'a' * place, 'label': 'no'} for place in range(30)]\n"
    )
    monkeypatch.chdir(tmp_path)
    tensors = only("things_of_this_test:tensors")
    assert (tensors.rows, tensors.field("x").inf, tensors.field("x").first_missing) == (30, 1, 4)
    assert only("things_of_this_test:function").field("x[1]").inf == 1
    assert only("things_of_this_test:rows").field("text").empty == 1
    with pytest.raises(TruelineError, match="has no 'other'"):
        only("things_of_this_test:other")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"a,b\n", "no rows"),
        ("a.csv", b"a,b,c\n1,2\n1,2\n", "Check the delimiter"),
        ("a.csv", b"name\ncaf\xe9\n", "line 2 holds the byte 0xe9"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "--encoding utf-16"),
        ("a.parquet", b"PAR1 and no more", "cannot be read as Parquet"),
        ("a.jsonl", b'{"a": 1}\n{"a": \n', "line 2"),
        ("a.json", b'[{"a": 1}, {"a"', "cut short"),
        ("a.npz", b"not a zip", "not a zip file"),
        ("a.xyz", b"what", "ending .xyz"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TruelineError, match=words):
        only(path)


def test_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("name,v\ncafé,1\n".encode("latin-1"))
    assert only(path, encoding="latin-1").field("name").constant is None
    assert only(path, encoding="latin-1").rows == 1


@pytest.mark.parametrize("path", ["not/there.csv", "no_such_module_here:name"])
def test_what_is_not_there(path: str) -> None:
    with pytest.raises(TruelineError, match="Expected"):
        open_dataset(path)
