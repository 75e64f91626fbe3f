"""Every reader of files, as the fuzzer calls it: with a folder in which the file lies, up to the values that are in it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzz import mutations, seeds

from trueline.checks import run_checks
from trueline.checks.ds_04_other_dataset.file_integrity import damage_of
from trueline.checks.ds_04_other_dataset.file_standards import standard_beside
from trueline.compare.files.comparison import compare_sources
from trueline.compare.map_file import read_map
from trueline.compare.runs.comparison import compare_runs
from trueline.datasets import examine, open_dataset
from trueline.datasets.table import Table
from trueline.diagnose import diagnose
from trueline.reading import reading
from trueline.report.comparison import print_run_comparison
from trueline.report.console import Console
from trueline.report.modules import print_modules
from trueline.report.scaler import print_scaler
from trueline.report.summary import print_events, print_steps, print_summary
from trueline.report.terminal import print_report
from trueline.rerun.before import before
from trueline.store import Run, last_step, read_tensors
from trueline.store.feed import Feed
from trueline.store.manifest import read as read_manifest
from trueline.store.origin import is_own
from trueline.store.reruns import rerun_notes
from trueline.tensorfiles import TensorSource, open_tensors
from trueline.tensorfiles.pickled import read_pickle
from trueline.tensorfiles.torch_objects import stand_in, storage_of
from trueline.tensorfiles.tree import model_of, tensors_of

Mutation = Callable[[bytes, Random], bytes]
_VALUES = 4096
_RUN_TABLES = [name for name, each in vars(Run).items() if not name.startswith("_") and hasattr(each, "func")]


@dataclass(frozen=True)
class Reader:
    """`files` beside the one that is mutated; `share`: how often it comes, as some are slow."""

    file: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], Any]
    mutations: tuple[Mutation, ...] = (mutations.mutated,)
    files: Callable[[], dict[str, bytes]] = dict
    share: int = 10


def _tensors(file: str, folder: Path) -> None:
    source = open_tensors(folder / file if file else folder)
    _look_at(source)


def _look_at(source: TensorSource) -> None:
    for entry in source.model_entries[:20]:
        if entry.statistics is None:
            stored = source.stored(source.full_name(entry.name))
            stored.values(0, min(stored.count, _VALUES))
            if stored.count <= _VALUES:
                source.read(source.full_name(entry.name))


def _compared(file: str, folder: Path) -> None:
    source = open_tensors(folder / file)
    compare_sources(source, open_tensors(folder / file), fixed=None, units=16.0, every=True, progress=None)


def _pickle(folder: Path) -> None:
    with (folder / "a.pkl").open("rb") as file:
        content = read_pickle(file, str(folder / "a.pkl"), stand_in, storage_of)
    model_of(content)
    for _ in tensors_of(content, str(folder / "a.pkl")):
        pass


def _run(folder: Path) -> None:
    run = Run(folder)
    try:
        for table in _RUN_TABLES:
            getattr(run, table)
        run.stats("output")
        run.stats("update", 1)
    finally:
        run.close()


def _shown(folder: Path) -> None:
    run = Run(folder)
    try:
        console = Console(file=io.StringIO(), width=100)
        print_summary(console, run)
        if run.modules:
            print_modules(console, run, every=True)
        print_steps(console, run.steps[-5:])
        print_events(console, run, run.events)
        print_scaler(console, run)
    finally:
        run.close()


def _checked(folder: Path) -> None:
    run = Run(folder)
    try:
        print_report(Console(file=io.StringIO(), width=100), diagnose(run, run_checks(run)), run, verbose=True)
        with reading(folder):
            print_run_comparison(Console(file=io.StringIO(), width=100), compare_runs(run, run, None))
    finally:
        run.close()


def _info(folder: Path) -> None:
    run = Run(folder)
    run.close()
    is_own(folder, run.info)
    last_step(folder)


def _notes(folder: Path) -> None:
    run = Run(folder)
    try:
        before(run)
    finally:
        run.close()
    rerun_notes(folder)


def _kept(folder: Path) -> None:
    for values in read_tensors(folder, 0).values():
        np.asarray(values).ravel()[:_VALUES].tolist()
    Feed(folder).read(0)


def _dataset(file: str, folder: Path) -> None:
    tables: list[Table] = open_dataset(str(folder / file if file else folder))
    for table in tables:
        examine(table)


def _integrity(folder: Path) -> None:
    for path in folder.iterdir():
        damage_of(path)
        standard_beside(path)


@cache
def _of_run(*names: str) -> dict[str, bytes]:
    found = {"run.json": seeds.run_files()["run.json"]}
    return found | {f"rank0.{name}": seeds.run_files()[name] for name in names}


def _run_seed(name: str) -> list[bytes]:
    return [seeds.run_files()[name]]


def _inner_pickle(name: str, content: bytes, chance: Random) -> bytes:
    if not name.endswith(".pkl"):
        return mutations.mutated(content, chance)
    return chance.choice((mutations.mutated, mutations.spliced_pickle, mutations.odd_pickle))(content, chance)


def _inner_npy(_name: str, content: bytes, chance: Random) -> bytes:
    return chance.choice((mutations.mutated, mutations.odd_npy))(content, chance)


_ZIPPED_PICKLE = partial(mutations.odd_zip, inner=_inner_pickle)
_ZIPPED_NPY = partial(mutations.odd_zip, inner=_inner_npy)
_BYTES, _JSON = mutations.mutated, mutations.odd_json
_PICKLE = (_BYTES, mutations.spliced_pickle, mutations.odd_pickle)

READERS = {
    "torch": Reader("a.pth", lambda: seeds.torch_files(zipped=True), partial(_tensors, "a.pth"), (_BYTES, _ZIPPED_PICKLE)),
    "torch, old": Reader(
        "a.pth", lambda: seeds.torch_files(zipped=False), partial(_tensors, "a.pth"), (_BYTES, mutations.spliced_pickle)
    ),
    "pickle": Reader("a.pkl", lambda: [b"\x80\x02}q\x00X\x01\x00\x00\x00aK\x01s."], _pickle, _PICKLE),
    "safetensors": Reader(
        "a.safetensors",
        seeds.safetensors_files,
        partial(_tensors, "a.safetensors"),
        (_BYTES, mutations.odd_safetensors),
        share=15,
    ),
    "npy": Reader("a.npy", seeds.npy_files, partial(_tensors, "a.npy"), (_BYTES, mutations.odd_npy)),
    "npz": Reader("a.npz", seeds.npz_files, partial(_tensors, "a.npz"), (_BYTES, _ZIPPED_NPY)),
    "ckpt": Reader("a.ckpt", seeds.mindspore_files, partial(_tensors, "a.ckpt"), share=15),
    "dump": Reader("dump.json", seeds.dump_files, partial(_tensors, ""), (_BYTES, _JSON)),
    "compared": Reader(
        "a.safetensors",
        seeds.safetensors_files,
        partial(_compared, "a.safetensors"),
        (_BYTES, mutations.odd_safetensors),
        share=4,
    ),
    "run.json": Reader("run.json", lambda: _run_seed("run.json"), _info, (_BYTES, _JSON), lambda: _of_run("sqlite"), 5),
    "database": Reader("rank0.sqlite", lambda: _run_seed("sqlite"), _run, (_BYTES, mutations.odd_database), _of_run, 4),
    "journal": Reader("rank0.journal", lambda: _run_seed("journal"), _run, (_BYTES, mutations.odd_journal), _of_run, 3),
    "shown": Reader("rank0.sqlite", lambda: _run_seed("sqlite"), _shown, (_BYTES, mutations.odd_database), _of_run, 2),
    "checked": Reader("rank0.sqlite", lambda: _run_seed("sqlite"), _checked, (_BYTES, mutations.odd_database), _of_run, 1),
    "kept": Reader("tensors/step0-rank0.safetensors", seeds.safetensors_files, _kept, (_BYTES, mutations.odd_safetensors)),
    "feed": Reader(
        "feed/000000.safetensors",
        seeds.feed_files,
        lambda folder: Feed(folder).read(0),
        (_BYTES, mutations.odd_safetensors),
    ),
    "notes": Reader("before/log", seeds.note_files, _notes, (_BYTES, _JSON), lambda: _of_run("sqlite"), 3),
    "manifest": Reader("m.json", seeds.manifest_files, lambda folder: read_manifest(folder / "m.json"), (_BYTES, _JSON)),
    "map": Reader("m.json", seeds.map_files, lambda folder: read_map(folder / "m.json"), (_BYTES, _JSON)),
    "csv": Reader("a.csv", seeds.csv_files, partial(_dataset, "a.csv"), share=3),
    "csv.gz": Reader("a.csv.gz", seeds.packed_csv_files, partial(_dataset, "a.csv.gz"), (_BYTES, mutations.packed), share=3),
    "json lines": Reader("a.jsonl", seeds.json_line_files, partial(_dataset, "a.jsonl"), share=3),
    "json": Reader("a.json", seeds.json_files, partial(_dataset, "a.json"), (_BYTES, _JSON), share=3),
    "npy data": Reader("a.npy", seeds.npy_files, partial(_dataset, "a.npy"), (_BYTES, mutations.odd_npy), share=3),
    "npz data": Reader("a.npz", seeds.npz_files, partial(_dataset, "a.npz"), (_BYTES, _ZIPPED_NPY), share=2),
    "parquet": Reader("a.parquet", seeds.parquet_files, partial(_dataset, "a.parquet"), share=2),
    "images": Reader("a/b.png", seeds.image_files, partial(_dataset, ""), share=2),
    "integrity": Reader("a.npz", seeds.npz_files, _integrity, (_BYTES, _ZIPPED_NPY)),
}
