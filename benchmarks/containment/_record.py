"""What a record holds and what rests on it, in a form in which two recordings of one script can be compared."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from trueline.checks import registry, run_checks
from trueline.model import FailedWatch, Finding
from trueline.model.parts import PARTS
from trueline.store import Run, RunBeingRead
from trueline.store.database import open_rank

# What is not the same in two recordings of one script is left out: times, numbers that count happenings, and what refers to
# those (which samples are kept hangs on them). Links to lines are compared with the findings that name them.
_TABLES = {
    "module": "id, root, path, root_name, type, kind, same_as, settings",
    "parameter": "id, root, module, path, shape, dtype, trainable, buffer, same_as",
    "optimizer": "id, type",
    "optimizer_parameter": "optimizer, grp, position, parameter, shape, steps, without_gradient",
    "hyperparameter": "step, optimizer, grp, name, value",
    "loader": "id, dataset, length, batch_size, sampler",
    "step": "id, optimizer, loss, grad_norm, finite, sampled, backwards, cleared, with_gradient, without_gradient",
    "root_call": "step, module, training, grad, loss, dropout, dropout_active, batch_norm, batch_norm_batch, batch IS NULL",
    "batch": "step, loader, epoch, position, size, fingerprints, targets, target_kind, nonfinite",
    "field_stat": "step, owner, field, shape, dtype, axis, count, low, high, mean, std, nan, inf, spikes, padding",
    "score": "step, training, labels, margins, predicted",
    "sample": "count(*) > 0",
    "loss_call": "step, kind, grad, value, settings",
    "op": "step, name, module, outputs, used",
    "snapshot": "step, parameter, trainable, optimizer, gradient, digest, row_spread",
}
_STATS = (
    "SELECT role, step, subject, position, shape, dtype, min, max, mean, std, l2, nan, inf, sketch, dead, weight_l2 "
    "FROM tensor_stat"
)


def parts_held(run: Run) -> dict[str, str]:
    """A hash of what the record holds of each part."""
    rows: dict[str, list[str]] = {part: [] for part in PARTS}
    connection = open_rank(run.directory, run.rank, finished=True)
    try:
        for table, columns in _TABLES.items():
            rows[table] = [repr(row) for row in connection.execute(f"SELECT {columns} FROM {table}")]  # noqa: S608
        for role, *row in connection.execute(_STATS):
            rows.setdefault(f"stat:{role}", []).append(repr(row))
        for kind, *row in connection.execute("SELECT kind, step, subject, value, detail FROM event"):
            rows.setdefault(f"event:{kind}", []).append(_event(row))
    finally:
        connection.close()
    return {part: hashlib.sha256("\n".join(sorted(held)).encode()).hexdigest() for part, held in rows.items()}


def _event(row: list[Any]) -> str:
    detail = json.loads(row[3]) if row[3] else {}
    # The parameter of a collective operation is told by the address of its gradient, which several passes of a step may reuse.
    for name in ("mtime", "of", "parameter", "product", "weighted_by", "function", "size", "path"):
        detail.pop(name, None)
    # The batch of a loss of evaluation is a number that counts happenings.
    return repr((row[0], row[2], detail))


def findings(run: Run) -> dict[str, dict[str, Any]]:
    return {finding.id: _plain(finding) for finding in run_checks(run)}


def _plain(finding: Finding) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(finding, enc_hook=str))
    # References to happenings by their number.
    for each in plain["evidence"]:
        each.pop("values", None)
    return plain


def parts_read(run: Run) -> dict[str, list[str]]:
    """The parts that each item rests on in this run."""
    whole = [FailedWatch(part, (part,), 0, "") for part in PARTS]
    found = {}
    for check in registry().values():
        view = RunBeingRead(run)
        view.run = _Failed(run, whole)  # type: ignore[assignment]
        check.conclude(view)
        found[check.id] = sorted(view.missing)
    return found


class _Failed:
    """A run of which each part is missing on its own."""

    def __init__(self, run: Run, failed: list[FailedWatch]) -> None:
        self._run = run
        self.failed_watches = failed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)
