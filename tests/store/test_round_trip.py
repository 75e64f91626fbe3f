"""What the writer was given comes out of the reader."""

from __future__ import annotations

import json
import math
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from builders import run_info
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.errors import RunNotFound
from trueline.model import (
    Batch,
    Event,
    FieldStat,
    HyperParameter,
    Location,
    LossCall,
    Op,
    RootCall,
    Scores,
    Snapshot,
    Step,
    TensorStat,
)
from trueline.store import FORMAT, Run, Writer, write_info

Row = tuple[Any, ...]
RUNS = settings(max_examples=40)

numbers = st.integers(0, 2**62)
text = st.text(max_size=20)
# SQLite keeps -0.0 as 0.
reals = st.floats(allow_nan=False).map(lambda value: value + 0.0)
shapes = st.lists(st.integers(0, 100), max_size=4)
objects = st.dictionaries(
    text, st.none() | st.booleans() | st.integers(-(2**53), 2**53) | reals.filter(math.isfinite) | text, max_size=4
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def unique(rows: st.SearchStrategy[Row]) -> st.SearchStrategy[list[Row]]:
    return st.lists(rows, max_size=6, unique_by=lambda row: row[0])


@contextmanager
def run_of(rows: dict[str, list[Row]]) -> Iterator[Run]:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        write_info(directory, run_info("run"))
        writer = Writer(directory, 0)
        for table, table_rows in rows.items():
            writer.commit({table: table_rows})
        writer.close()
        run = Run(directory)
        yield run
        run.close()


def same(one: Any, other: Any) -> bool:
    """Equal, NaN being equal to itself."""
    return repr(msgspec.to_builtins(one)) == repr(msgspec.to_builtins(other))


step_rows = unique(
    st.tuples(
        numbers, numbers, maybe(numbers), *[maybe(reals | st.just(math.nan))] * 2, st.booleans(), reals, reals, st.booleans(),
        numbers, maybe(st.booleans()), maybe(numbers), maybe(numbers),
    )
)  # fmt: skip


@given(step_rows)
@RUNS
def test_steps(rows: list[Row]) -> None:
    stored = [tuple("nan" if isinstance(part, float) and math.isnan(part) else part for part in row) for row in rows]
    with run_of({"step": stored}) as run:
        assert same(run.steps, [Step(*row) for row in sorted(rows, key=lambda row: row[0])])


@pytest.mark.parametrize("loss", [math.inf, -math.inf, 5e-324, 1.7976931348623157e308])
def test_extreme_losses_are_kept_to_the_bit(loss: float) -> None:
    with run_of({"step": [(0, 1, 1, loss, loss, 0, 0.1, 0.0, 1, 1, None, None, None)]}) as run:
        assert same((run.steps[0].loss, run.steps[0].grad_norm), (loss, loss))


def test_nan_is_not_taken_for_nothing() -> None:
    rows = [
        (0, 1, 1, "nan", "nan", 0, 0.1, 0.0, 1, 1, None, None, None),
        (1, 2, 1, None, None, 1, 0.1, 0.0, 1, 1, None, None, None),
    ]
    with run_of({"step": rows}) as run:
        nan, nothing = run.steps
    assert nan.loss is not None
    assert nan.grad_norm is not None
    assert math.isnan(nan.loss)
    assert math.isnan(nan.grad_norm)
    assert (nothing.loss, nothing.grad_norm) == (None, None)


@given(unique(st.tuples(numbers, numbers, text, maybe(numbers), maybe(st.integers(1, 3)), maybe(reals), maybe(objects))))
@RUNS
def test_events_with_their_lines(rows: list[Row]) -> None:
    lines = {1: Location("a.py", 1, None, "f", "x = 1"), 2: Location("b/c.py", 20, None, None, None)}
    locations = [(key, line.file, line.line, line.function, line.source) for key, line in lines.items()]
    stored = [(*row[:6], None if row[6] is None else json.dumps(row[6])) for row in rows]
    with run_of({"event": stored, "location": locations}) as run:
        expected = [Event(*row[:4], lines.get(row[4]), row[5], row[6] or {}) for row in sorted(rows, key=lambda row: row[0])]
        assert same(run.events, expected)
        kinds = {row[2] for row in rows}
        assert sum(len(run.events_of(kind)) for kind in kinds) == len(run.events_of(*kinds)) == len(rows)


@given(
    unique(
        st.tuples(
            numbers, numbers, st.sampled_from([None, 1, 2]), maybe(numbers), maybe(numbers), reals,
            st.lists(st.tuples(st.integers(0, 2**64 - 1), st.floats()), max_size=5), maybe(text), st.lists(objects, max_size=2),
        )
    )
)  # fmt: skip
@RUNS
def test_batches(rows: list[Row]) -> None:
    stored, expected = [], []
    fields = [{"name": "0", "shape": [4, 2], "dtype": "float32"}]
    seen: set[int | None] = set()
    for seq, step, loader, epoch, position, wait, samples, kind, missing in sorted(rows, key=lambda row: row[0]):
        prints = tuple(mark for mark, _ in samples)
        targets = None if kind is None else tuple(value for _, value in samples)
        blob = None if targets is None else np.array(targets, "<f8").tobytes()
        described = None if loader in seen else json.dumps(fields)
        seen.add(loader)
        marks = np.array(prints, ">u8").tobytes()
        gaps = json.dumps(missing) if missing else None
        stored.append((seq, step, loader, epoch, position, wait, len(samples), marks, blob, kind, described, gaps))
        expected.append(Batch(seq, step, loader, epoch, position, wait, len(samples), prints, targets, kind, fields, missing))
    with run_of({"batch": stored}) as run:
        assert same(run.batches, expected)


@given(
    st.lists(
        st.tuples(
            st.integers(-1, 50), st.sampled_from(["output", "gradient"]), st.integers(0, 3), numbers, shapes, text,
            *[maybe(reals)] * 7, numbers, numbers, maybe(st.lists(st.floats(width=32), min_size=64, max_size=64)),
            maybe(reals), maybe(reals),
        ),
        max_size=5,
    )
)  # fmt: skip
@settings(max_examples=25)
def test_statistics(rows: list[Row]) -> None:
    stored = [
        (*row[:4], json.dumps(row[4]), *row[5:15], None if row[15] is None else np.array(row[15], "<f4").tobytes(), *row[16:])
        for row in rows
    ]
    with run_of({"tensor_stat": stored}) as run:
        for role in ("output", "gradient"):
            wanted = sorted((row for row in rows if row[1] == role), key=lambda row: row[0])
            made = [
                TensorStat(*row[:4], tuple(row[4]), *row[5:15], None if row[15] is None else tuple(row[15]), *row[16:])
                for row in wanted
            ]
            assert same(run.stats(role), made)
            for subject in range(4):
                assert same(run.stats(role, subject), [stat for stat in made if stat.subject == subject])


def float_arrays(size: int) -> st.SearchStrategy[tuple[float, ...]]:
    return st.lists(st.floats(allow_nan=False), min_size=size, max_size=size).map(tuple)


@given(
    st.lists(
        st.tuples(
            numbers, numbers, st.sampled_from(["batch", "call"]), text, shapes, text, maybe(numbers), numbers,
            *[float_arrays(3)] * 4, numbers, numbers, st.lists(objects, max_size=2), maybe(objects.filter(bool)),
        ),
        max_size=4,
    )
)  # fmt: skip
@settings(max_examples=25)
def test_features(rows: list[Row]) -> None:
    stored = [
        (
            *row[:4], json.dumps(row[4]), *row[5:8], *(np.array(part, "<f8").tobytes() for part in row[8:12]), *row[12:14],
            json.dumps(row[14]), None if row[15] is None else json.dumps(row[15]),
        )
        for row in rows
    ]  # fmt: skip
    with run_of({"field_stat": stored}) as run:
        assert same(run.field_stats, [FieldStat(*row[:4], tuple(row[4]), *row[5:]) for row in rows])


@given(unique(st.tuples(numbers, numbers, numbers, st.booleans(), st.lists(st.integers(0, 9), max_size=4))))
@settings(max_examples=25)
def test_scores(rows: list[Row]) -> None:
    stored = [
        (
            *row[:4], np.array(row[4], "<i4").tobytes(), np.array(row[4], "<f4").tobytes(),
            np.array(row[4], "<i4").tobytes(),
        )
        for row in rows
    ]  # fmt: skip
    made = [
        Scores(*row[:4], tuple(row[4]), tuple(map(float, row[4])), tuple(row[4])) for row in sorted(rows, key=lambda row: row[0])
    ]
    with run_of({"score": stored}) as run:
        assert same(run.scores, made)


@given(
    unique(
        st.tuples(
            numbers,
            numbers,
            text,
            maybe(numbers),
            st.lists(text, max_size=3),
            st.lists(objects, max_size=2),
            objects,
            st.booleans(),
        )
    ),
    unique(st.tuples(numbers, numbers, text, st.booleans(), maybe(reals), objects, objects, objects)),
    unique(
        st.tuples(
            numbers, numbers, numbers, st.booleans(), st.booleans(), st.booleans(), *[numbers] * 4, maybe(numbers), maybe(numbers)
        )
    ),
)
@settings(max_examples=25)
def test_operations_losses_and_calls(ops: list[Row], losses: list[Row], calls: list[Row]) -> None:
    def by_seq(rows: list[Row]) -> list[Row]:
        return sorted(rows, key=lambda row: row[0])

    stored: dict[str, list[Row]] = {
        "op": [(*row[:4], None, *map(json.dumps, row[4:7]), row[7]) for row in ops],
        "loss_call": [(*row[:3], None, *row[3:5], *map(json.dumps, row[5:])) for row in losses],
        "root_call": [(*row[:3], None, *row[3:]) for row in calls],
    }
    with run_of(stored) as run:
        assert same(run.ops, [Op(*row[:4], None, *row[4:]) for row in by_seq(ops)])
        assert same(run.loss_calls, [LossCall(*row[:3], None, *row[3:]) for row in by_seq(losses)])
        assert same(run.root_calls, [RootCall(*row[:3], None, *row[3:]) for row in by_seq(calls)])


@given(
    st.lists(
        st.tuples(numbers, numbers, numbers, text, maybe(reals.filter(math.isfinite)) | text),
        max_size=5,
        unique_by=lambda row: row[:4],
    ),
    st.lists(st.tuples(numbers, st.integers(1, 2), st.booleans(), maybe(numbers), maybe(text), text, maybe(reals)), max_size=5),
)
@settings(max_examples=25)
def test_histories_keep_their_order(values: list[Row], snapshots: list[Row]) -> None:
    stored = {"hyperparameter": [(*row[:4], json.dumps(row[4])) for row in values], "snapshot": snapshots}
    with run_of(stored) as run:
        assert same(run.hyperparameters, [HyperParameter(*row) for row in values])
        for parameter in (1, 2):
            assert same(run.snapshots.get(parameter, []), [Snapshot(*row) for row in snapshots if row[1] == parameter])


def module_row(number: int, root: int, path: str, root_name: str) -> Row:
    return (number, root, path, root_name, "Linear", "linear", None, None, None, '{"bias": true}')


def parameter_row(number: int, root: int, path: str) -> Row:
    return (number, root, root, path, "[2, 3]", "float32", 1, 0, None, None, None)


def test_names_of_one_model() -> None:
    modules = [module_row(1, 1, "", "net"), module_row(2, 1, "fc", "net"), module_row(3, 3, "", "criterion")]
    with run_of({"module": modules, "parameter": [parameter_row(1, 1, "fc.weight")]}) as run:
        assert [module.name for module in run.modules.values()] == ["net", "fc", "criterion"]
        assert [module.name for module in run.roots] == ["net", "criterion"]
        assert run.parameters[1].name == "fc.weight"
        assert run.parameters[1].shape == (2, 3)
        assert run.modules[2].settings == {"bias": True}


def test_names_of_two_models_carry_the_model() -> None:
    modules = [module_row(1, 1, "", "generator"), module_row(2, 1, "fc", "generator"), module_row(3, 3, "", "critic")]
    parameters = [parameter_row(1, 1, "fc.weight"), parameter_row(2, 3, "weight")]
    with run_of({"module": modules, "parameter": parameters}) as run:
        assert [module.name for module in run.modules.values()] == ["generator", "generator.fc", "critic"]
        assert [parameter.name for parameter in run.parameters.values()] == ["generator.fc.weight", "critic.weight"]


def test_a_row_with_a_known_key_replaces_the_old_one() -> None:
    with run_of({"optimizer": [(1, "SGD", None), (1, "Adam", None)]}) as run:
        assert [optimizer.type for optimizer in run.optimizers.values()] == ["Adam"]
        assert run.meta["format"] == str(FORMAT)


@pytest.mark.parametrize("bad", [("key", object()), ("key", "\udce9"), ("key", 2**70), ("too", "many", "values")])
def test_a_commit_is_written_whole_or_not_at_all(tmp_path: Path, bad: Row) -> None:
    write_info(tmp_path, run_info("run"))
    writer = Writer(tmp_path, 0)
    with pytest.raises((AttributeError, UnicodeEncodeError, OverflowError, ValueError)):
        writer.commit({"optimizer": [(1, "SGD", None)], "meta": [bad]})
    with pytest.raises(KeyError):
        writer.commit({"optimizer": [(1, "SGD", None)], "no such table": [(1,)]})
    writer.commit({"optimizer": [(2, "Adam", None)]})
    writer.close()
    run = Run(tmp_path)
    assert list(run.optimizers) == [2]
    run.close()


def test_an_empty_commit_changes_nothing() -> None:
    with run_of({"step": [], "event": []}) as run:
        assert (run.steps, run.events, run.batches, run.snapshots) == ([], [], [], {})


def test_a_table_that_is_not_there_is_told_as_a_broken_recording(tmp_path: Path) -> None:
    write_info(tmp_path, run_info("run"))
    Writer(tmp_path, 0).close()
    connection = sqlite3.connect(tmp_path / "rank0.sqlite")
    connection.execute("DROP TABLE step")
    connection.close()
    with pytest.raises(
        RunNotFound, match=r"rank0\.sqlite cannot be read \(it does not have the tables of a record: see its table step"
    ):
        Run(tmp_path)
