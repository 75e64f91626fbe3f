"""Small files that ask for more than any machine has, and files that are not what they seem: each is made in a folder, with the
command that is to refuse it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import socket
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from builders import build_run

from trueline.store.format import database_file, journal_file

_GIB = 1 << 30
_MIB = 1 << 20


@dataclass(frozen=True)
class Hostile:
    """`named`: what of the file's name the message holds; `words`: what else."""

    command: tuple[str, ...]
    make: Callable[[Path], object]
    named: str
    words: str = ""


def _zip(path: Path, name: str, content: bytes, told: int | None = None, method: int = zipfile.ZIP_STORED) -> None:
    """One member whose bytes are given as they lie in the file; `told`: what it says it unpacks to."""
    told = len(content) if told is None else told
    head = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0x21, zlib.crc32(content), len(content), told & 0xFFFFFFFF, len(name), 0)
    start = b"PK\x03\x04" + head + name.encode() + content
    entry = b"PK\x01\x02\x14\x00" + head + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name.encode()
    path.write_bytes(start + entry + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(start), 0))


def _packed(start: bytes, block: bytes, count: int, kind: int = -15) -> bytes:
    """A block that repeats, packed once: to pack gigabytes takes its time. What is wrong at the end is never reached."""
    packer = zlib.compressobj(9, zlib.DEFLATED, kind)
    found = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return found + packed * count + packer.flush()


def _deflated_zeros(size: int, start: bytes = b"") -> bytes:
    return _packed(start, bytes(16 * _MIB), size // (16 * _MIB))


def _pickle(body: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        _zip(folder / "a.pth", "archive/data.pkl", b"\x80\x02" + body + b".")

    return make


def _shared(width: int, depth: int) -> bytes:
    content = b"}"
    for level in range(depth):
        keys = b"".join(b"X" + struct.pack("<I", 2) + f"{place:02d}".encode() + b"h" + bytes([level]) for place in range(width))
        content += b"q" + bytes([level]) + b"0}(" + keys + b"u"
    return content


def _packed_array(folder: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (_GIB - 64,)})  # type: ignore[no-untyped-call]
    content = _deflated_zeros(4 * _GIB - 32 * _MIB, header.getvalue())
    _zip(folder / "a.npz", "x.npy", content, 4 * _GIB - 128, zipfile.ZIP_DEFLATED)


def _sparse(path: Path, start: bytes, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(start)
    os.truncate(path, size)


def _run(folder: Path) -> Path:
    return build_run(folder / "run", [1.0, 0.9])


def _journal(content: bytes, size: int = 0) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        directory = _run(folder)
        database_file(directory, 0).unlink()
        _sparse(journal_file(directory, 0), content, max(size, len(content)))

    return make


def _database(*statements: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        connection = sqlite3.connect(database_file(_run(folder), 0), isolation_level=None)
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return make


def _shared_pages(folder: Path) -> None:
    """Pages whose every child is the same next page, six deep: some hundred rows to the power of seven."""
    path = database_file(_run(folder), 0)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(
        "INSERT INTO step WITH RECURSIVE c(x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM c LIMIT 20000) "
        "SELECT x, x, 1, 1.0, 1.0, 1, 0.1, 0.1, 0, 1, NULL, NULL, NULL FROM c"
    )
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'step' AND type = 'table'").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[16:18], "big")
    page = bytes(content[(root - 1) * size : root * size])
    count = len(content) // size
    content[(root - 1) * size : root * size] = _with_child(page, count + 1)
    for level in range(2, 7):
        content += _with_child(page, count + level)
    content += page
    content[28:32] = (len(content) // size).to_bytes(4, "big")
    path.write_bytes(content)


def _with_child(page: bytes, child: int) -> bytes:
    """An inner page whose cells all lead to one page."""
    changed = bytearray(page)
    changed[8:12] = child.to_bytes(4, "big")
    for cell in range(int.from_bytes(page[3:5], "big")):
        place = int.from_bytes(page[12 + 2 * cell : 14 + 2 * cell], "big")
        changed[place : place + 4] = child.to_bytes(4, "big")
    return bytes(changed)


_SERIES = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"


def _file(name: str, content: Callable[[], bytes]) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content())


def _safetensors(header: dict[str, object], told: int | None = None) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        text = json.dumps(header).encode()
        (folder / "a.safetensors").write_bytes((len(text) if told is None else told).to_bytes(8, "little") + text + bytes(64))

    return make


def _tensor(shape: list[int], offsets: list[int]) -> dict[str, object]:
    return {"x": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}


def _npy(shape: str, descr: str = "<f4") -> Callable[[Path], None]:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return _file("a.npy", lambda: b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64))


def _socket(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(folder / "a.ckpt"))


def _csv_bomb() -> bytes:
    return _packed(b"text,label\n", (b"x" * 1021 + b",y\n") * 8192, 50, 31)


PARAMS, DATA, SHOW = ("params",), ("data",), ("show",)
HOSTILE: dict[str, Hostile] = {
    # Pickles of a kilobyte or two.
    "shared dicts": Hostile((*PARAMS, "a.pth"), _pickle(_shared(20, 12)), "a.pth", "in each other"),
    "a list that holds itself": Hostile((*PARAMS, "a.pth"), _pickle(b"]q\x00h\x00a"), "a.pth", "in each other"),
    "a dict that holds itself": Hostile((*PARAMS, "a.pth"), _pickle(b"}q\x00X\x01\x00\x00\x00ah\x00s"), "a.pth"),
    "the hash of a nested tuple": Hostile((*PARAMS, "a.pth"), _pickle(b"})" + b"\x85" * 200_000 + b"K\x01s"), "a.pth", "key"),
    "copies of a list": Hostile(
        (*PARAMS, "a.pth"),
        _pickle(b"](" + b"N" * 100_000 + b"eq\x00(" + b"cbuiltins\nlist\nh\x00\x85R" * 9000 + b"l"),
        "a.pth",
        "MiB",
    ),
    "a text of 4 GB": Hostile((*PARAMS, "a.pth"), _pickle(b"\x8d" + struct.pack("<Q", 4 * _GIB)), "a.pth"),
    "names of names": Hostile(
        (*PARAMS, "a.pth"), _pickle(b"}q\x00" + b"}X" + struct.pack("<I", 50_000) + b"k" * 50_000 + b"h\x00sq\x00" * 60), "a.pth"
    ),
    # Zips.
    "a packed member of 4 GB": Hostile(
        ("convert", "a.npz", "b.safetensors", "--to", "safetensors"), _packed_array, "a.npz", "unpack"
    ),
    "packed samples of 4 GB": Hostile((*DATA, "a.npz"), _packed_array, "a.npz", "unpack"),
    "a packed pickle of 4 GB": Hostile(
        (*PARAMS, "a.pth"),
        lambda folder: _zip(
            folder / "a.pth",
            "archive/data.pkl",
            _deflated_zeros(_GIB, b"\x80\x02\x8d" + struct.pack("<Q", 4 * _GIB)),
            -1,
            zipfile.ZIP_DEFLATED,
        ),
        "a.pth",
        "larger than",
    ),
    "a member that unpacks without a limit": Hostile(
        (*PARAMS, "a.pth"),
        lambda folder: _zip(folder / "a.pth", "archive/data.pkl", bz2.compress(bytes(16 * _MIB)), 300 * _MIB, zipfile.ZIP_BZIP2),
        "a.pth",
        "method 12",
    ),
    "a directory of 3 GB": Hostile(
        (*PARAMS, "a.pth"),
        lambda folder: _with_end(folder / "a.pth", 3 * _GIB, struct.pack("<HHHHIIH", 0, 0, 9, 9, 3 * _GIB - 200, 100, 0)),
        "a.pth",
        "larger than",
    ),
    # Records of runs.
    "a sparse journal of 3 GB": Hostile(
        (*SHOW, "run"), _journal(struct.pack("<I", 3 * _GIB) + b"\x81\xa4step", 4 * _GIB), "rank0.journal"
    ),
    "a journal with bad UTF-8": Hostile((*SHOW, "run"), _journal(b"\x06\x00\x00\x00\x81\xa4\xff\xff\xff\xff"), "rank0.journal"),
    "a frame of lists in lists": Hostile(
        (*SHOW, "run"),
        _journal(struct.pack("<I", 30 * _MIB) + b"\x81\xa4step\xdd\x01\xdf\xff\xf5" + b"\x90" * (30 * _MIB)),
        "rank0.journal",
    ),
    "a recursive view": Hostile(
        (*SHOW, "run"),
        _database("DROP TABLE step", f"CREATE VIEW step AS {_SERIES} SELECT x AS id, x AS seq FROM c"),
        "rank0.sqlite",
        "view step",
    ),
    "a view of 5.7 GB": Hostile(
        (*SHOW, "run"),
        _database(
            "DROP TABLE meta", f"CREATE VIEW meta AS {_SERIES} SELECT x AS key, hex(zeroblob(3000000)) AS value FROM c LIMIT 950"
        ),
        "rank0.sqlite",
        "view meta",
    ),
    "a generated column": Hostile(
        (*SHOW, "run"),
        _database("ALTER TABLE step ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))"),
        "rank0.sqlite",
        "table step",
    ),
    "a trigger": Hostile(
        (*SHOW, "run"), _database("CREATE TRIGGER t AFTER INSERT ON step BEGIN SELECT 1; END"), "rank0.sqlite", "trigger t"
    ),
    "a virtual table": Hostile((*SHOW, "run"), _database("CREATE VIRTUAL TABLE f USING fts5(x)"), "rank0.sqlite"),
    "pages that are their own children": Hostile((*SHOW, "run"), _shared_pages, "rank0.sqlite"),
    "texts in the place of numbers": Hostile(
        (*SHOW, "run"), _database("UPDATE step SET seconds = 'long'"), "rank0.sqlite", "seconds"
    ),
    "a run.json of 4 GB": Hostile(
        (*SHOW, "run"),
        lambda folder: _sparse(_run(folder) / "run.json", b'{"format": 2, "name": "', 4 * _GIB),
        "run.json",
        "larger",
    ),
    "a run.json in itself": Hostile(
        (*SHOW, "run"), lambda folder: (_run(folder) / "run.json").write_bytes(b'{"x":' + b"[" * _MIB), "run.json"
    ),
    # What is no file.
    "a pipe as a checkpoint": Hostile((*PARAMS, "a.pth"), lambda folder: os.mkfifo(folder / "a.pth"), "a.pth", "a pipe"),
    "a pipe as samples": Hostile((*DATA, "a.csv"), lambda folder: os.mkfifo(folder / "a.csv"), "a.csv", "a pipe"),
    "a pipe as a map": Hostile(
        (*PARAMS, "b.npy", "b.npy", "--map", "a.json"),
        lambda folder: (np.save(folder / "b.npy", np.ones(3)), os.mkfifo(folder / "a.json")),
        "a.json",
        "a pipe",
    ),
    "a device": Hostile((*PARAMS, "a.bin"), lambda folder: (folder / "a.bin").symlink_to("/dev/zero"), "a.bin", "a device"),
    "a socket": Hostile((*PARAMS, "a.ckpt"), _socket, "a.ckpt", "a socket"),
    # Headers that lie.
    "safetensors of negative length": Hostile(
        (*PARAMS, "a.safetensors"), _safetensors(_tensor([-1, -4], [0, 16])), "a.safetensors"
    ),
    "safetensors beyond 64 bits": Hostile(
        (*PARAMS, "a.safetensors"), _safetensors(_tensor([1 << 62, 4], [0, 0])), "a.safetensors", "shape"
    ),
    "safetensors before its start": Hostile((*PARAMS, "a.safetensors"), _safetensors(_tensor([4], [-16, 0])), "a.safetensors"),
    "safetensors with a header of 2^63": Hostile(
        (*PARAMS, "a.safetensors"), _safetensors({}, 1 << 63), "a.safetensors", "header"
    ),
    "an array beyond 64 bits": Hostile((*PARAMS, "a.npy"), _npy(f"({1 << 40}, {1 << 40})"), "a.npy", "shape"),
    "an array of negative length": Hostile((*PARAMS, "a.npy"), _npy("(-1, 4)"), "a.npy", "shape"),
    "samples of negative length": Hostile((*DATA, "a.npy"), _npy("(-1, 4)"), "a.npy", "shape"),
    "samples of no bytes": Hostile((*DATA, "a.npy"), _npy(f"({1 << 40},)", "|V0"), "a.npy", "no bytes"),
    "an array with a header of 4 GB": Hostile(
        (*PARAMS, "a.npy"),
        lambda folder: _sparse(folder / "a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xf0", 5 * _GIB),
        "a.npy",
        "larger",
    ),
    # Samples.
    "more fields than a table has": Hostile(
        (*DATA, "a.csv"), _file("a.csv", lambda: b"a," * 120_000 + b"b\n1\n"), "a.csv", "fields"
    ),
    "a packed table of a hundred times": Hostile((*DATA, "a.csv.gz"), _file("a.csv.gz", _csv_bomb), "a.csv.gz", "unpacks"),
    "a line of 3 GB": Hostile(
        (*DATA, "a.jsonl"), lambda folder: _sparse(folder / "a.jsonl", b'{"a": 1}\n{"b": "', 3 * _GIB), "a.jsonl", "line"
    ),
    "an object of 3 GB": Hostile((*DATA, "a.json"), lambda folder: _sparse(folder / "a.json", b'[{"b": "', 3 * _GIB), "a.json"),
    "JSON in itself": Hostile((*DATA, "a.jsonl"), _file("a.jsonl", lambda: b'{"a": ' + b"[" * 200_000 + b"\n"), "a.jsonl"),
    "other keys in every object": Hostile(
        (*DATA, "a.jsonl"),
        _file(
            "a.jsonl",
            lambda: b"".join(json.dumps({f"k{row}_{key}": 1 for key in range(30)}).encode() + b"\n" for row in range(3000)),
        ),
        "a.jsonl",
        "keys",
    ),
    "a manifest in itself": Hostile(
        (*DATA, "b.csv", "--against", "a.json"),
        lambda folder: ((folder / "b.csv").write_text("a,b\n1,2\n"), (folder / "a.json").write_bytes(b"[" * 500_000)),
        "a.json",
    ),
}


def _with_end(path: Path, size: int, end: bytes) -> None:
    _sparse(path, b"PK\x03\x04", size)
    with path.open("r+b") as file:
        file.seek(size - 22)
        file.write(b"PK\x05\x06" + end)


def long_line(folder: Path) -> None:
    """Harmless: a text of 200 KiB in one field."""
    (folder / "a.csv").write_text("text,label\n" + f'"{"word " * 40_000}",x\n' + "short,y\n" * 3)


def packed_well(folder: Path) -> None:
    """Harmless: what packs well is still read."""
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"0,1\n" * 100_000, mtime=0))
