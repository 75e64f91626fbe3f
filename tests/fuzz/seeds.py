"""Valid files of every kind that Trueline reads, as bytes: what the fuzzer starts from."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from builders import build_run, stat_row
from safetensors.numpy import save as save_safetensors

from trueline.store.database import fold
from trueline.store.format import database_file, journal_file
from trueline.store.journal import Journal

ROWS = [{"a": 1.5, "label": "x", "n": None}, {"a": -2, "label": "y", "more": {"k": [1, 2]}}, {"a": "?", "label": "x"}]


def _written(write: Callable[[Any], None]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def _content() -> dict[str, Any]:
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(net.parameters())
    shared = torch.ones(4, 3)
    return {
        "model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "views": [shared.t(), shared[:2]],
        "bfloat": torch.ones(2).bfloat16(), "parameter": torch.nn.Parameter(torch.zeros(2)), "names": ("a", {"b": 1.5}),
    }  # fmt: skip


def torch_files(*, zipped: bool) -> list[bytes]:
    import torch

    torch.manual_seed(0)
    contents = (_content(), torch.arange(6), {"w": torch.ones(2, 2)})
    return [_written(lambda to, each=each: torch.save(each, to, _use_new_zipfile_serialization=zipped)) for each in contents]


def safetensors_files() -> list[bytes]:
    arrays = {"a.weight": np.ones((2, 3), np.float32), "b": np.arange(4), "empty": np.zeros((0, 2), np.float16)}
    return [save_safetensors(arrays, {"format": "pt"}), save_safetensors({"x": np.zeros(3)})]


def feed_files() -> list[bytes]:
    return [save_safetensors({"0": np.ones((2, 3), np.float32), "1": np.arange(2)})]


def npy_files() -> list[bytes]:
    arrays = [
        np.arange(12.0).reshape(4, 3), np.asfortranarray(np.ones((3, 2), ">i4")), np.array(2.5), np.array(["ab", "c"]),
        np.zeros(3, [("a", "<f4"), ("b", "<i8", (2,))]), np.array([1, 2], "M8[s]"),
    ]  # fmt: skip
    return [_written(lambda to, each=each: np.save(to, each)) for each in arrays]


def npz_files() -> list[bytes]:
    arrays = {"x": np.arange(20.0).reshape(10, 2), "y": np.arange(10), "f": np.asfortranarray(np.ones((10, 3)))}
    return [_written(lambda to: np.savez(to, **arrays)), _written(lambda to: np.savez_compressed(to, **arrays))]


def _field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return bytes([number << 3]) + _varint(content)
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def mindspore_files() -> list[bytes]:
    def value(name: str, dims: list[int], kind: str, content: bytes) -> bytes:
        tensor = b"".join(_field(1, dim) for dim in dims) + _field(2, kind.encode()) + _field(3, content)
        return _field(1, _field(1, name.encode()) + _field(2, tensor))

    plain = value("fc.weight", [2, 3], "Float32", bytes(24)) + value("epoch", [0], "Int32", bytes(4))
    sliced = value("big", [4], "Float16", bytes(4)) + value("big", [4], "Float16", bytes(4))
    return [plain, plain + sliced, plain + b"crc_num" + bytes(10)]


def dump_files() -> list[bytes]:
    described = {
        "type": "torch.Tensor",
        "dtype": "torch.float32",
        "shape": [2, 3],
        "Max": 1.0,
        "Min": 0.0,
        "Mean": 0.5,
        "Norm": 2,
    }
    sides = {"input_args": [described, None, {"value": 3}], "output": [described]}
    dump = {"task": "statistics", "framework": "pytorch", "data": {"Module.fc.Linear.forward.0": sides, "F.relu.0": sides}}
    return [json.dumps(dump).encode()]


@cache
def run_files() -> dict[str, bytes]:
    """`run.json`, the database and the journal of one run that has rows in every table."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        directory = build_run(Path(folder) / "run", [2.3, float("nan"), 1.1, 0.9], rows=_rows())
        found["run.json"] = (directory / "run.json").read_bytes()
        found["sqlite"] = database_file(directory, 0).read_bytes()
        journal = Journal(journal_file(directory, 1))
        journal.append({"meta": [["format", "2"], ["unseen", '["order"]']]})
        for table, rows in _rows().items():
            journal.append({table: [list(row) for row in rows]})
        journal.append({"step": [[step, step, 1, 1.0, 0.5, 1, 0.1, 0.0, 1, 1, None, 4, 0] for step in range(3)]})
        journal.close()
        found["journal"] = journal_file(directory, 1).read_bytes()
        fold(journal_file(directory, 1), database_file(directory, 1))
    return found


def _rows() -> dict[str, list[tuple[Any, ...]]]:
    prints, targets = np.arange(4, dtype=">u8").tobytes(), np.zeros(4, "<f8").tobytes()
    ends = np.zeros(2, "<f8").tobytes()
    described = '{"shape": [4, 3], "dtype": "float32", "min": 0.0, "max": 1.0, "op": 21}'
    return {
        "batch": [
            (3, 0, 1, 0, 0, 0.1, 4, prints, targets, "class", '[{"name": "x", "shape": [4, 2], "dtype": "float32"}]', None)
        ],
        "field_stat": [(3, 0, "batch", "x", "[4, 2]", "float32", -1, 4, ends, ends, ends, ends, 0, 0, "[]", None)],
        "root_call": [(4, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 3, None)],
        "score": [(6, 0, 3, 1, bytes(16), bytes(16), bytes(16))],
        "sample": [(3, 0, 1, "00000000000000ff", "float32", "[2]", bytes(8))],
        "loss_call": [(8, 0, "cross_entropy", 3, 1, 2.3, described, described, '{"reduction": "mean"}')],
        "op": [(21, 0, "linear", 2, 1, '["b3", "p1"]', '[{"shape": [4, 3], "dtype": "float32"}]', "{}", 1)],
        "optimizer_parameter": [(1, 0, place, place + 1, "[32]", 4, 0) for place in range(4)],
        "snapshot": [(step, 1, 1, 1, "full", f"{step:016x}", 0.5) for step in (-1, 0, 3)],
        "tensor_stat": [stat_row(step, role, 1) for step in (1, 2) for role in ("output", "gradient", "parameter", "update")],
        "event": [(1, 0, "seed", None, 3, 1.0, '{"library": "torch", "seed": 0}')],
    }


def csv_files() -> list[bytes]:
    lines = "a,b,label\n" + "".join(f"{place},{place * 0.5},{'xy'[place % 2]}\n" for place in range(40))
    return [lines.encode(), b"1;2;?\n3;4;x\n" * 5, b'name,text\n1,"a ""b"", c"\n2,\xc3\xa9\n']


def packed_csv_files() -> list[bytes]:
    return [gzip.compress(each, mtime=0) for each in csv_files()]


def json_line_files() -> list[bytes]:
    return [b"\n".join(json.dumps(row).encode() for row in ROWS * 5), b'{"x": [1, 2], "y": NaN}\n{"x": [3, 4], "y": 1e400}\n']


def json_files() -> list[bytes]:
    columns = {"a": [1, 2, 3], "label": ["x", "y", "x"]}
    return [json.dumps(ROWS * 5).encode(), json.dumps(columns).encode(), json.dumps({"samples": ROWS, "n": 3}).encode()]


def parquet_files() -> list[bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table(
        {"a": [1.5, None, 3.0] * 5, "label": ["x", "y", "x"] * 5, "s": [{"k": [1], "t": "é"}] * 15, "b": [True] * 15}
    )
    return [
        _written(lambda to, each=each: parquet.write_table(table, to, compression=each)) for each in ("none", "snappy", "zstd")
    ]


def image_files() -> list[bytes]:
    from PIL import Image

    image = Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3))
    kinds = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
    return [_written(lambda to, each=each: image.save(to, each)) for each in kinds]


def manifest_files() -> list[bytes]:
    entry = {"path": "a/b.csv", "size": 12, "md5": "0" * 32, "xxh3": "1" * 32}
    return [json.dumps({"schema": "trueline.manifest/1", "files": [entry]}).encode()]


def map_files() -> list[bytes]:
    return [json.dumps({"conv1.weight": "features.0.weight", "fc.bias": "head.bias"}).encode()]


def note_files() -> list[bytes]:
    log = (
        b'{"op": "file", "path": "/tmp/x", "copy": "1", "size": 3}\n{"op": "suspect", "path": "/tmp/y", "size": 1, "mtime": 2}\n'
    )
    changes = b'{"made": ["/tmp/a"], "changed": [], "removed": ["/tmp/b"], "complete": true}'
    return [log, changes, b'{"rerun": {"refused": "no", "doubt": null}}', b"0" * 64]
