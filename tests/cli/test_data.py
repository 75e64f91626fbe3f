"""`trueline data` on real files: what it finds, what it leaves alone, its JSON and its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import trueline
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine


def checked(folder: Path, *words: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Exit code, document, and conclusion by item."""
    ran = trueline("data", *words, "--json", "out.json", cwd=folder)
    assert ran.returncode in (0, 1), ran.stderr
    document = json.loads((folder / "out.json").read_text())
    return ran.returncode, document, {each["id"]: each["conclusion"] for each in document["checklist"]}


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_digits, load_diabetes])
def test_healthy_datasets_are_left_alone(tmp_path: Path, load: Any) -> None:
    load(as_frame=True).frame.to_csv(tmp_path / "a.csv", index=False)
    code, document, _ = checked(tmp_path, "a.csv")
    assert code == 0
    assert document["verdict"]["status"] == "no_problem"


def test_missing_values_and_sentinels(tmp_path: Path) -> None:
    frame = load_iris(as_frame=True).frame
    frame.iloc[::10, 1] = -999
    frame.iloc[5, 2] = np.nan
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, document, items = checked(tmp_path, "a.csv")
    assert (code, document["verdict"]["cause"], items["ds.01"]) == (1, "ds.01", "problem_found")
    fields = {field["name"]: field for field in document["tables"][0]["fields"]}
    assert fields["sepal width (cm)"]["sentinels"][0]["count"] == 15
    assert fields["petal length (cm)"]["first_missing"] == 5


def test_conflicting_labels_and_imbalance(tmp_path: Path) -> None:
    frame = load_wine(as_frame=True).frame.iloc[[*range(135), 3]].reset_index(drop=True)
    frame.loc[135, "target"] = 1
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, document, items = checked(tmp_path, "a.csv")
    assert (code, items["ds.02"], items["ds.03"]) == (1, "problem_found", "problem_found")
    evidence = next(each for each in document["checklist"] if each["id"] == "ds.02")["evidence"][0]
    assert evidence["values"]["examples"] == [[3, 135]]


def test_equal_coarse_rows_with_different_labels_are_no_alarm(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lines = [",".join(map(str, random.integers(0, 3, 4))) + f",{random.integers(0, 2)}" for _ in range(500)]
    (tmp_path / "a.csv").write_text("a,b,c,d,label\n" + "\n".join(lines))
    code, _, items = checked(tmp_path, "a.csv")
    assert (code, items["ds.02"]) == (0, "not_checked")


def test_manifest_and_what_differs(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for part in range(3):
        (tmp_path / "set" / f"{part}.csv").write_text("a,label\n" + "".join(f"{each * 1.37},{each % 2}\n" for each in range(40)))
    assert trueline("data", "set", "--manifest", "m.json", cwd=tmp_path).returncode in (0, 1)
    assert checked(tmp_path, "set", "--against", "m.json")[2]["ds.04"] == "no_problem"
    (tmp_path / "set" / "1.csv").write_text("a,label\n1.5,0\n")
    (tmp_path / "set" / "2.csv").unlink()
    code, document, items = checked(tmp_path, "set", "--against", "m.json")
    assert (code, items["ds.04"]) == (1, "problem_found")
    texts = " ".join(each["text"] for each in document["checklist"][3]["evidence"])
    assert "1.csv" in texts
    assert "2.csv" in texts


def test_label_errors(tmp_path: Path) -> None:
    digits = load_digits()
    labels = digits.target.copy()
    wrong = np.random.default_rng(0).choice(len(labels), 60, replace=False)
    labels[wrong] = (labels[wrong] + 3) % 10
    np.savez(tmp_path / "a.npz", x=digits.data[:1000], y=labels[:1000])
    _, document, items = checked(tmp_path, "a.npz", "--label-errors")
    assert items["ds.02"] == "not_checked"
    found = document["tables"][0]["label_errors"]
    rows = {each["row"] for each in found["candidates"]}
    assert len(rows & set(wrong.tolist())) > 0.8 * (wrong < 1000).sum()


def test_label_errors_without_cleanlab(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,label\n" + "1.5,0\n2.5,1\n" * 10)
    (tmp_path / "cleanlab.py").write_text("raise ImportError('not installed here')\n")
    ran = trueline("data", "a.csv", "--label-errors", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert ran.returncode == 2
    assert "pip install 'trueline[label-errors]'" in ran.stderr


def test_the_report(tmp_path: Path) -> None:
    load_iris(as_frame=True).frame.to_csv(tmp_path / "iris.csv", index=False)
    shown = trueline("data", "iris.csv", cwd=tmp_path).stdout
    assert "iris.csv  150 rows · 5 fields · label target (guessed by its name)" in shown
    assert "█" * 40 in shown
    assert "1 row is a copy of another" in shown


def test_bad_usage(tmp_path: Path) -> None:
    for words, message in (
        (["nothing.csv"], "There is no file or folder"),
        (["a.csv", "--label", "nope"], "There is no field 'nope'"),
        (["a.csv", "--against", "a.csv"], "Expected a manifest"),
    ):
        (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
        ran = trueline("data", *words, cwd=tmp_path)
        assert ran.returncode == 2, sys.argv
        assert message in ran.stderr
        assert "Traceback" not in ran.stderr
