"""Labels that cleanlab doubts: needs the extra `label-errors`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from trueline.datasets.columns import Chunk, Numbers
from trueline.datasets.optional import require
from trueline.datasets.summary import Candidate, LabelErrors, TableSummary
from trueline.datasets.table import Table
from trueline.errors import TruelineError

_MOST_ROWS = 20_000
_FOLDS = 5
_MOST_NAMED = 50
_MOST_FEATURES = 4096
_PURPOSE = "for --label-errors"


def find_label_errors(table: Table, summary: TableSummary, rows: int | None = None) -> LabelErrors:
    """Out-of-sample probabilities of a logistic regression on the numeric features, five folds, judged by cleanlab. Of
    large tables the first 20,000 rows (or `rows`)."""
    cleanlab = require("cleanlab.filter", _PURPOSE, "label-errors")
    require("sklearn", _PURPOSE, "label-errors")
    if summary.label is None or summary.label.kind != "class":
        raise TruelineError("--label-errors needs a label of classes. Name its field with --label FIELD.")
    features, labels, places = _collected(table, summary, rows or _MOST_ROWS)
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    enough = counts[codes] >= _FOLDS
    if (counts >= _FOLDS).sum() < 2:
        raise TruelineError(
            f"--label-errors needs two classes with at least {_FOLDS} rows. Received {dict(zip(names, counts, strict=True))}."
        )
    features, labels, places = features[enough], labels[enough], places[enough]
    names, codes = np.unique(labels, return_inverse=True)
    probabilities = _cross_validated(features, codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doubted = cleanlab.find_label_issues(codes, probabilities, return_indices_ranked_by="self_confidence", n_jobs=1)
    guesses = probabilities.argmax(axis=1)
    candidates = [
        Candidate(int(places[at]), str(names[codes[at]]), str(names[guesses[at]]), float(probabilities[at, codes[at]]))
        for at in doubted[:_MOST_NAMED].tolist()
    ]
    return LabelErrors(candidates, len(doubted), len(codes), float((guesses == codes).mean()))


def _collected(table: Table, summary: TableSummary, most: int) -> tuple[Any, Any, Any]:
    """Numeric features, labels and row numbers of the first rows with a label."""
    usable = [field.name for field in summary.fields if field.role == "feature" and field.type in ("number", "integer", "array")]
    if not usable:
        raise TruelineError(
            "--label-errors needs numeric features; there are none. Give an array of features, such as embeddings."
        )
    blocks, labels, places = [], [], []
    first = 0
    for chunk in table.read():
        blocks.append(_features(chunk, usable))
        label = chunk.columns[summary.label.field] if summary.label is not None else None
        names = [] if summary.label is None else [summary.label.hashes.get(value, "") for value in label.identity.tolist()]  # type: ignore[union-attr]
        labels.append(np.array(names, dtype=object))
        places.append(np.arange(first, first + chunk.rows))
        first += chunk.rows
        if first >= most:
            break
    known = np.concatenate(labels)[:most]
    labelled = np.array([name != "" for name in known])
    return np.concatenate(blocks)[:most][labelled], known[labelled].astype(str), np.concatenate(places)[:most][labelled]


def _features(chunk: Chunk, names: list[str]) -> Any:
    parts = []
    for name in names:
        column = chunk.columns.get(name)
        if not isinstance(column, Numbers) or len(column.values) != chunk.rows:
            raise TruelineError(
                f"--label-errors needs numbers in every row; {name} is not numeric throughout. Leave it out of the file."
            )
        values = column.values.reshape(chunk.rows, -1)
        parts.append(values[:, :: -(-values.shape[1] // _MOST_FEATURES)].astype(np.float32))
    return np.concatenate(parts, axis=1)


def _cross_validated(features: Any, codes: Any) -> Any:
    impute, linear, selection, pipeline, scaling = (
        require(f"sklearn.{part}", _PURPOSE, "label-errors")
        for part in ("impute", "linear_model", "model_selection", "pipeline", "preprocessing")
    )
    features = np.where(np.isfinite(features), features, np.nan)
    model = pipeline.make_pipeline(
        impute.SimpleImputer(keep_empty_features=True), scaling.StandardScaler(), linear.LogisticRegression(max_iter=200)
    )
    folds = selection.StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return selection.cross_val_predict(model, features, codes, cv=folds, method="predict_proba")
