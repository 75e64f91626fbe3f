"""The machine-readable contract: a diagnosis as JSON."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec
import numpy as np

from trueline.model import Comparison, Diagnosis, Finding, Location, NonFinite, RunInfo
from trueline.output import is_seen

_NOT_ASCII = re.compile(r"[^\x00-\x7e]")


def json_document(document: Any) -> bytes:
    """The document as JSON, indented, ending in a newline. NaN and infinity become null, as JSON has neither.

    It may be read on a terminal: what is not to be seen is escaped as JSON does it. Names of files that are no text come
    out as Python has them, with the bytes as lone surrogates.
    """
    try:
        text = msgspec.json.format(msgspec.json.encode(document, enc_hook=_plain), indent=2).decode()
    except UnicodeEncodeError:
        text = json.dumps(_with_nulls(msgspec.to_builtins(document, enc_hook=_plain)), indent=2, allow_nan=False)
    return _NOT_ASCII.sub(lambda found: _escaped(found[0]), text).encode() + b"\n"


def _with_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_nulls(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_nulls(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escaped(character: str) -> str:
    return character if is_seen(character) else json.dumps(character)[1:-1]


def diagnosis_json(diagnosis: Diagnosis, info: RunInfo | None = None) -> bytes:
    """The document of DESIGN, indented, ending in a newline. NaN and infinity become null, as JSON has neither.

    Beyond the contract it holds `recording`: how the script ended and whether the recorder kept up; `incomplete`: why
    the record does not hold the whole training; `unseen`: what could not be watched of it.
    """
    verdict = diagnosis.verdict
    document = {
        "schema": diagnosis.schema,
        "run": diagnosis.run,
        "reference": diagnosis.reference,
        "verdict": {"status": verdict.status, "cause": verdict.cause, "headline": verdict.headline},
        "checklist": [_item(finding) for finding in diagnosis.checklist],
        "comparison": _comparison(diagnosis.comparison),
        "nonfinite": _nonfinite(diagnosis.nonfinite),
        "incomplete": verdict.incomplete,
        "unseen": diagnosis.unseen,
        "recording": None if info is None else _recording(info, diagnosis),
    }
    return json_document(document)


def _item(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "title": finding.title,
        "conclusion": finding.conclusion,
        "confidence": finding.confidence,
        "confirmed": finding.confirmed,
        "summary": finding.summary,
        "evidence": [
            {"text": each.text, "values": each.values, "step": each.step, "location": _location(each.location)}
            for each in finding.evidence
        ],
        "location": _location(finding.location),
        "fix": finding.fix,
        "limits": finding.limits,
        "consequence_of": finding.consequence_of,
    }


def _location(location: Location | None) -> dict[str, Any] | None:
    if location is None:
        return None
    return {
        "file": location.file,
        "line": location.line,
        "module": location.module,
        "function": location.function,
        "source": location.source,
    }


def comparison_document(comparison: Comparison, run: str, reference: str) -> bytes:
    """The comparison of two runs on its own, in the form that it has in a diagnosis."""
    document = {"schema": "trueline.comparison/1", "run": run, "reference": reference, "comparison": _comparison(comparison)}
    return json_document(document)


def _comparison(comparison: Comparison | None) -> dict[str, Any] | None:
    if comparison is None:
        return None
    told: dict[str, Any] = msgspec.to_builtins(comparison)
    found = comparison.first_divergence
    if found is not None:
        told["first_divergence"]["location"] = _location(found.location)
    return told


def _nonfinite(nonfinite: NonFinite | None) -> dict[str, Any] | None:
    if nonfinite is None:
        return None
    return {
        "step": nonfinite.step,
        "phase": nonfinite.phase,
        "module": nonfinite.module,
        "operation": nonfinite.operation,
        "location": _location(nonfinite.location),
    }


def _recording(info: RunInfo, diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "status": info.status,
        "exit_code": info.exit_code,
        "error": info.error,
        "recorder_error": info.recorder_error,
        "failed_watches": diagnosis.failed_watches,
        "frameworks": info.frameworks,
        "seconds": info.seconds,
    }


def _plain(value: Any) -> Any:
    """Checks compute with numpy; its numbers and arrays become those of JSON."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)
