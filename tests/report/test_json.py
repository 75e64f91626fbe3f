"""The JSON document keeps the contract of the design."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import numpy as np
from builders import run_info

from trueline.model import Conclusion, Diagnosis, Evidence, Finding, Location, NonFinite, Verdict
from trueline.report.json import diagnosis_json

LOCATION = Location("train.py", 42, "head.fc", "main", "loss = F.cross_entropy(out, y)")


def _diagnosis(**values: Any) -> Diagnosis:
    evidence = [Evidence("Rows sum to 1.", values, 3, LOCATION)]
    problem = Finding(
        "cg.04", "Wrong loss", Conclusion.PROBLEM_FOUND, "Softmax twice.", 0.97, None, evidence, LOCATION, "Drop it.", "-"
    )
    passed = Finding("dp.03", "Not shuffled", Conclusion.NO_PROBLEM, "Shuffled.", 0.9)
    nonfinite = NonFinite(7, "forward", "blocks.3.mlp", "log", Location("net.py", 31))
    return Diagnosis("run-1", Verdict("problem_found", "cg.04", "Wrong loss."), [passed, problem], nonfinite=nonfinite)


def test_keys_of_the_contract() -> None:
    document = json.loads(diagnosis_json(_diagnosis(), run_info("run-1")))
    assert list(document)[:7] == ["schema", "run", "reference", "verdict", "checklist", "comparison", "nonfinite"]
    assert document["schema"] == "trueline.diagnosis/1"
    assert document["reference"] is None
    assert document["comparison"] is None
    assert document["verdict"] == {"status": "problem_found", "cause": "cg.04", "headline": "Wrong loss."}
    passed, problem = document["checklist"]
    assert set(problem) >= {
        "id", "title", "conclusion", "confidence", "confirmed", "summary", "evidence", "location", "fix", "limits",
    }  # fmt: skip
    assert problem["conclusion"] == "problem_found"
    assert problem["confirmed"] is None
    assert {key: problem["location"][key] for key in ("file", "line", "module")} == {
        "file": "train.py", "line": 42, "module": "head.fc",
    }  # fmt: skip
    assert passed["location"] is None
    assert document["nonfinite"]["location"]["line"] == 31
    assert document["nonfinite"]["phase"] == "forward"
    assert document["recording"]["exit_code"] == 0


def test_it_decodes_to_the_same_diagnosis() -> None:
    diagnosis = _diagnosis(row_sum=[0.99, 1.01], count=3)
    assert msgspec.json.decode(diagnosis_json(diagnosis), type=Diagnosis) == diagnosis


def test_not_a_number_becomes_null() -> None:
    document = json.loads(diagnosis_json(_diagnosis(loss=math.nan, norm=math.inf)), parse_constant=_refuse)
    assert document["checklist"][1]["evidence"][0]["values"] == {"loss": None, "norm": None}


def test_numbers_of_numpy_become_plain_ones() -> None:
    values = {"share": np.float32(0.5), "count": np.int64(3), "flag": np.bool_(True), "curve": np.array([1.0, np.nan])}
    document = json.loads(diagnosis_json(_diagnosis(**values)), parse_constant=_refuse)
    assert document["checklist"][1]["evidence"][0]["values"] == {"share": 0.5, "count": 3, "flag": True, "curve": [1.0, None]}


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")
