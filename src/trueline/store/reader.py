"""Reading a recorded run: every check, comparison and report goes through `Run`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from trueline.errors import RunNotFound
from trueline.model import (
    Batch,
    Event,
    FailedWatch,
    FieldStat,
    HyperParameter,
    Loader,
    Location,
    LossCall,
    Module,
    Op,
    Optimizer,
    OptimizerParameter,
    Parameter,
    RootCall,
    RunInfo,
    Sample,
    Scores,
    Snapshot,
    Step,
    TensorStat,
)
from trueline.reading import reading
from trueline.store.database import RECORD_AGAIN, open_rank
from trueline.store.format import database_file, read_info, recorded_ranks
from trueline.store.tables import rows_of

_Read = TypeVar("_Read")
_json = msgspec.json.decode
_shape = msgspec.json.Decoder(tuple[int, ...]).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode
_objects = msgspec.json.Decoder(list[dict[str, Any]]).decode
_texts = msgspec.json.Decoder(list[str]).decode


def _table(read: Callable[[Run], _Read]) -> cached_property[_Read]:
    """What is read once and kept; a record that cannot be read is one message, whatever is wrong with it."""

    @wraps(read)
    def guarded(run: Run) -> _Read:
        with reading(database_file(run.directory, run.rank), RECORD_AGAIN, RunNotFound):
            return read(run)

    return cached_property(guarded)


class Run:
    """One recorded run, seen from one rank (0 unless told otherwise). Tables are read when first asked for and kept."""

    def __init__(self, directory: Path, rank: int | None = None) -> None:
        self.directory = directory
        self.info: RunInfo = read_info(directory)
        self.ranks = recorded_ranks(directory)
        if not self.ranks:
            raise RunNotFound(
                f"{directory} holds no recording: the script never imported a framework that Trueline records, "
                "or it was stopped before it did. Run it again with: trueline run SCRIPT"
            )
        self.rank = self.ranks[0] if rank is None else rank
        if self.rank not in self.ranks:
            raise RunNotFound(f"Rank {rank} is not in {directory}. Expected one of {self.ranks}.")
        self._connection = open_rank(directory, self.rank, finished=self.info.status != "running")

    def of_rank(self, rank: int) -> Run:
        """The same run as another rank saw it."""
        return Run(self.directory, rank)

    def beside(self, directory: Path) -> Run:
        """Another run that the same conclusion is drawn from."""
        return Run(directory)

    def close(self) -> None:
        self._connection.close()

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return rows_of(self._connection, query, *values)

    @_table
    def meta(self) -> dict[str, str]:
        """What the recorder noted of the whole run: `framework`, `framework_version`, `failed_watches` …"""
        return dict(self._rows("SELECT key, value FROM meta"))

    @_table
    def unseen(self) -> frozenset[str]:
        """What could not be watched because it ran inside of compiled graphs: `operations`, `layers` (their tensors), `losses`
        (where only values can judge them), `scores` (of samples), `freezing` (which parameters get a gradient), `dropout` (its
        functional form), `gradients`, `order` (of the parts of a step). No check passes for want of these."""
        return frozenset(_texts(self.meta.get("unseen", "[]")))

    @_table
    def alignment(self) -> dict[str, Any]:
        """How the run was made comparable with another one; empty where it was not."""
        return _object(self.meta.get("alignment", "{}"))

    @_table
    def failed_watches(self) -> list[FailedWatch]:
        """The watches that failed while this rank was recorded, in the order in which they did."""
        return msgspec.json.decode(self.meta.get("failed_watches", "[]"), type=list[FailedWatch])

    @cached_property
    def failed_anywhere(self) -> list[FailedWatch]:
        """Those of all ranks, each once."""
        found = {failed.watch: failed for failed in self.failed_watches}
        for rank in self.ranks:
            if rank != self.rank:
                with closing(self.of_rank(rank)) as other:
                    found = {failed.watch: failed for failed in other.failed_watches} | found
        return list(found.values())

    @property
    def framework(self) -> str | None:
        """The framework that trained, whose words advice is given in; the one that was imported where nothing trained."""
        return "mindspore" if "recorded" in self.meta else next(iter(self.info.frameworks), None)

    @_table
    def _locations(self) -> dict[int, Location]:
        rows = self._rows("SELECT id, file, line, function, source FROM location")
        return {key: Location(file, line, None, function, source) for key, file, line, function, source in rows}

    def _location(self, key: int | None) -> Location | None:
        return None if key is None else self._locations.get(key)

    @_table
    def modules(self) -> dict[int, Module]:
        rows = self._rows(
            "SELECT id, root, path, root_name, type, kind, same_as, built, called, settings FROM module ORDER BY id"
        )
        several = self._has_several_models
        return {
            row[0]: Module(
                row[0], row[1], row[2], _display_name(row[2], row[3], several_models=several), row[4], row[5], row[6],
                self._location(row[7]), self._location(row[8]), _object(row[9]),
            )
            for row in rows
        }  # fmt: skip

    @_table
    def _has_several_models(self) -> bool:
        """Whether names need their root's name in front: loss functions and other roots without parameters do not count."""
        return len(self._rows("SELECT DISTINCT root FROM parameter LIMIT 2")) > 1

    @property
    def roots(self) -> list[Module]:
        """The modules that the script called itself, in the order of their first call."""
        return [module for module in self.modules.values() if module.id == module.root]

    @_table
    def parameters(self) -> dict[int, Parameter]:
        """Parameters and buffers of all root modules."""
        rows = self._rows(
            "SELECT id, root, module, path, shape, dtype, trainable, buffer, same_as, initialised, loaded FROM parameter "
            "ORDER BY id"
        )
        found = {}
        for row in rows:
            name = _display_name(row[3], self.modules[row[1]].name, several_models=self._has_several_models)
            found[row[0]] = Parameter(
                row[0], row[1], row[2], row[3], name, _shape(row[4]), row[5],
                bool(row[6]), bool(row[7]), row[8], self._location(row[9]), self._location(row[10]),
            )  # fmt: skip
        return found

    @_table
    def optimizers(self) -> dict[int, Optimizer]:
        rows = self._rows("SELECT id, type, built FROM optimizer ORDER BY id")
        return {key: Optimizer(key, kind, self._location(built)) for key, kind, built in rows}

    @_table
    def optimizer_parameters(self) -> list[OptimizerParameter]:
        rows = self._rows(
            "SELECT optimizer, grp, position, parameter, shape, steps, without_gradient FROM optimizer_parameter "
            "ORDER BY optimizer, grp, position"
        )
        return [OptimizerParameter(row[0], row[1], row[2], row[3], _shape(row[4]), row[5], row[6]) for row in rows]

    @_table
    def hyperparameters(self) -> list[HyperParameter]:
        rows = self._rows("SELECT step, optimizer, grp, name, value FROM hyperparameter ORDER BY rowid")
        return [HyperParameter(step, optimizer, group, name, _json(value)) for step, optimizer, group, name, value in rows]

    @_table
    def loaders(self) -> dict[int, Loader]:
        rows = self._rows("SELECT id, dataset, length, batch_size, sampler, built, settings FROM loader ORDER BY id")
        found = {}
        for row in rows:
            settings = _object(row[6])
            lines = tuple((name, self._location(line)) for name, line in settings.pop("lines", []))
            found[row[0]] = Loader(row[0], row[1], row[2], row[3], row[4], self._location(row[5]), settings, lines)
        return found

    @_table
    def steps(self) -> list[Step]:
        rows = self._rows(
            "SELECT id, seq, optimizer, loss, grad_norm, finite, seconds, wait, sampled, backwards, cleared, with_gradient, "
            "without_gradient FROM step ORDER BY id"
        )
        return [
            Step(
                row[0], row[1], row[2], _number(row[3]), _number(row[4]), bool(row[5]),
                row[6], row[7], bool(row[8]), row[9], None if row[10] is None else bool(row[10]), row[11], row[12],
            )
            for row in rows
        ]  # fmt: skip

    @_table
    def events(self) -> list[Event]:
        rows = self._rows("SELECT seq, step, kind, subject, location, value, detail FROM event ORDER BY seq")
        return [
            Event(row[0], row[1], row[2], row[3], self._location(row[4]), row[5], _object(row[6]) if row[6] else {})
            for row in rows
        ]

    def events_of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    @_table
    def root_calls(self) -> list[RootCall]:
        rows = self._rows(
            "SELECT seq, step, module, location, training, grad, loss, dropout, dropout_active, batch_norm, batch_norm_batch, "
            "batch, fed_by FROM root_call ORDER BY seq"
        )
        return [
            RootCall(
                row[0], row[1], row[2], self._location(row[3]), bool(row[4]), bool(row[5]), bool(row[6]),
                row[7], row[8], row[9], row[10], row[11], row[12],
            )
            for row in rows
        ]  # fmt: skip

    @_table
    def batches(self) -> list[Batch]:
        rows = self._rows(
            "SELECT seq, step, loader, epoch, position, wait, size, fingerprints, targets, target_kind, fields, nonfinite "
            "FROM batch ORDER BY seq"
        )
        fields_of: dict[int | None, list[dict[str, Any]]] = {}
        found = []
        for seq, step, loader, epoch, position, wait, size, fingerprints, targets, target_kind, fields, nonfinite in rows:
            if fields is not None:
                fields_of[loader] = _objects(fields)
            hashes = tuple(np.frombuffer(fingerprints, ">u8").tolist())
            values = None if targets is None else tuple(np.frombuffer(targets, "<f8").tolist())
            known = fields_of.get(loader, [])
            missing = _objects(nonfinite) if nonfinite else []
            found.append(Batch(seq, step, loader, epoch, position, wait, size, hashes, values, target_kind, known, missing))
        return found

    @_table
    def field_stats(self) -> list[FieldStat]:
        """The features of batches and inputs that were looked at, in the order in which they came."""
        rows = self._rows(
            "SELECT seq, step, owner, field, shape, dtype, axis, count, low, high, mean, std, nan, inf, spikes, padding "
            "FROM field_stat ORDER BY rowid"
        )
        return [
            FieldStat(
                row[0], row[1], row[2], row[3], _shape(row[4]), row[5], row[6], row[7],
                _floats(row[8]), _floats(row[9]), _floats(row[10]), _floats(row[11]), row[12], row[13],
                _objects(row[14]) if row[14] else [], _object(row[15]) if row[15] else None,
            )
            for row in rows
        ]  # fmt: skip

    @_table
    def scores(self) -> list[Scores]:
        """How the samples of batches were judged, in the order in which it happened."""
        rows = self._rows("SELECT seq, step, batch, training, labels, margins, predicted FROM score ORDER BY seq")
        return [
            Scores(
                row[0], row[1], row[2], bool(row[3]), tuple(np.frombuffer(row[4], "<i4").tolist()),
                tuple(np.frombuffer(row[5], "<f4").tolist()), tuple(np.frombuffer(row[6], "<i4").tolist()),
            )
            for row in rows
        ]  # fmt: skip

    @_table
    def samples(self) -> list[Sample]:
        """The content of the samples that were kept for review."""
        rows = self._rows("SELECT batch, row, label, fingerprint, dtype, shape, content FROM sample ORDER BY rowid")
        return [Sample(row[0], row[1], row[2], int(row[3], 16), row[4], _shape(row[5]), row[6]) for row in rows]

    @_table
    def loss_calls(self) -> list[LossCall]:
        rows = self._rows("SELECT seq, step, kind, location, grad, value, input, target, settings FROM loss_call ORDER BY seq")
        return [
            LossCall(
                row[0],
                row[1],
                row[2],
                self._location(row[3]),
                bool(row[4]),
                row[5],
                _object(row[6]),
                _object(row[7]),
                _object(row[8]),
            )
            for row in rows
        ]

    @_table
    def ops(self) -> list[Op]:
        """The traced operations, in the order in which they ran."""
        rows = self._rows("SELECT seq, step, name, module, location, inputs, outputs, settings, used FROM op ORDER BY seq")
        return [
            Op(
                row[0],
                row[1],
                row[2],
                row[3],
                self._location(row[4]),
                _texts(row[5]),
                _objects(row[6]),
                _object(row[7]),
                bool(row[8]),
            )
            for row in rows
        ]

    def stats(self, role: str, subject: int | None = None) -> list[TensorStat]:
        """Statistics of one role (see TensorStat), of all subjects or of one, ordered by step."""
        with reading(database_file(self.directory, self.rank), RECORD_AGAIN, RunNotFound):
            return self._stats(role, subject)

    def _stats(self, role: str, subject: int | None) -> list[TensorStat]:
        query = (
            "SELECT step, role, subject, position, shape, dtype, min, max, mean, std, l2, abs_mean, zero_share, nan, inf, "
            "sketch, dead, weight_l2 FROM tensor_stat WHERE role = ?"
        )
        if subject is None:
            rows = self._rows(query + " ORDER BY step, rowid", role)
        else:
            rows = self._rows(query + " AND subject = ? ORDER BY step, rowid", role, subject)
        return [
            TensorStat(
                row[0], row[1], row[2], row[3], _shape(row[4]), row[5], row[6], row[7], row[8], row[9], row[10], row[11],
                row[12], row[13], row[14], None if row[15] is None else tuple(np.frombuffer(row[15], "<f4").tolist()),
                row[16], row[17],
            )
            for row in rows
        ]  # fmt: skip

    @_table
    def snapshots(self) -> dict[int, list[Snapshot]]:
        """Snapshots by parameter id, ordered in time."""
        rows = self._rows(
            "SELECT step, parameter, trainable, optimizer, gradient, digest, row_spread FROM snapshot ORDER BY rowid"
        )
        found: dict[int, list[Snapshot]] = {}
        for step, parameter, trainable, optimizer, gradient, digest, spread in rows:
            found.setdefault(parameter, []).append(
                Snapshot(step, parameter, bool(trainable), optimizer, gradient, digest, spread)
            )
        return found


def _display_name(path: str, root_name: str, *, several_models: bool) -> str:
    if not path:
        return root_name
    return f"{root_name}.{path}" if several_models else path


def _floats(blob: bytes) -> tuple[float, ...]:
    return tuple(np.frombuffer(blob, "<f8").tolist())


def _number(value: float | str | None) -> float | None:
    """SQLite would keep NaN as NULL, so it is stored as text."""
    return None if value is None else float(value)
