"""Files as nobody would write them: bytes changed at random, and files that are well formed and say what is not true."""

from __future__ import annotations

import gzip
import io
import json
import pickletools
import re
import sqlite3
import struct
import zipfile
from random import Random
from typing import Any

import msgspec

_NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    65535,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)
_TEXTS = ("", "a", "é" * 3, "\0", "../x", "storage", "model", "x" * 300, "\x1b[31m", "NaN", "1e999", "-1", "9" * 30)
_DIGITS = re.compile(rb"\d+")


def mutated(seed: bytes, chance: Random) -> bytes:
    """Some bytes changed, moved, doubled or left out."""
    content = bytearray(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        size = len(content)
        place = chance.randrange(size + 1)
        length = min(chance.choice((1, 1, 2, 4, 8, 32, 300)), size)
        way = chance.randrange(9)
        if way == 0 and place < size:
            content[place] ^= 1 << chance.randrange(8)
        elif way == 1 and place < size:
            content[place] = chance.choice((0, 0x7F, 0x80, 0xFF, 0x22, 0x5B, 0x7B, 0x2E, chance.randrange(256)))
        elif way == 2:
            number, width = chance.choice(_NUMBERS), chance.choice((1, 2, 4, 8))
            content[place : place + width] = (number & ((1 << 8 * width) - 1)).to_bytes(width, chance.choice(("little", "big")))
        elif way == 3:
            del content[place : place + length]
        elif way == 4:
            content[place:place] = content[place : place + length] * chance.choice((1, 2, 50))
        elif way == 5:
            content[place:place] = chance.randbytes(length)
        elif way == 6:
            del content[place:]
        elif way == 7:
            start = chance.randrange(size + 1)
            content[place : place + length] = content[start : start + length]
        elif numbers := list(_DIGITS.finditer(content)):
            found = chance.choice(numbers)
            content[found.start() : found.end()] = str(chance.choice((*_NUMBERS, -1, 10**30, 1.5, "1e400"))).encode()
    return bytes(content)


def odd_value(chance: Random, depth: int = 3) -> Any:
    """A value as JSON and MessagePack have them."""
    way = chance.randrange(9 if depth else 6)
    if way < 2:
        return chance.choice((*_NUMBERS, -1, -(1 << 63)))
    if way == 2:
        return chance.choice(_TEXTS)
    if way == 3:
        return chance.choice((None, True, False))
    if way == 4:
        return chance.choice((0.5, 1e308, -1e-320, 3.0))
    if way == 5:
        return []
    if way == 6:
        return [odd_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(_TEXTS): odd_value(chance, depth - 1) for _ in range(chance.randrange(4))}


def odd_json(seed: bytes, chance: Random) -> bytes:
    """JSON in which some values are of another kind, missing, doubled or deeply nested."""
    try:
        content = json.loads(seed)
    except ValueError:
        return mutated(seed, chance)
    for _ in range(chance.choice((1, 1, 2, 5))):
        content = _replaced(content, chance)
    text = json.dumps(content)
    if chance.random() < 0.02:
        text = text.replace("null", "[" * chance.choice((50, 2000, 200_000)), 1)
    return text.encode()


def _replaced(node: Any, chance: Random) -> Any:
    if chance.random() < 0.15 or not isinstance(node, dict | list) or not node:
        return odd_value(chance)
    if isinstance(node, dict):
        key = chance.choice(list(node))
        if chance.random() < 0.1:
            return {each: value for each, value in node.items() if each != key}
        return node | {key: _replaced(node[key], chance)}
    place = chance.randrange(len(node))
    return [*node[:place], _replaced(node[place], chance), *node[place + 1 :]]


def odd_safetensors(seed: bytes, chance: Random) -> bytes:
    length = int.from_bytes(seed[:8], "little")
    header = odd_json(seed[8 : 8 + length], chance)
    told = len(header) if chance.random() < 0.9 else chance.choice(_NUMBERS)
    return told.to_bytes(8, "little") + header + seed[8 + length :]


def packed(seed: bytes, chance: Random) -> bytes:
    """A whole gzip of a file that is not."""
    try:
        return gzip.compress(mutated(gzip.decompress(seed), chance), 1, mtime=0)
    except (OSError, EOFError):
        return mutated(seed, chance)


def odd_npy(seed: bytes, chance: Random) -> bytes:
    descr = chance.choice(
        [
            "'<f4'",
            "'<f8'",
            "'|O'",
            "'|S0'",
            "'|V2000000000'",
            "'<U1000000'",
            "[('a', '<f4'), ('b', '<i8', (3,))]",
            "'M8[as]'",
            "'<c16'",
            "'|b1'",
            "('<f4', (1000000, 1000000))",
            "[]",
            "None",
            "'" + "x" * 300 + "'",
            "'<V0'",
        ]
    )
    lengths = [chance.choice((*_NUMBERS, -1, 3, 4)) for _ in range(chance.choice((0, 1, 2, 2, 3, 40)))]
    shape = chance.choice(
        (f"({', '.join(map(str, lengths))},)" if lengths else "()", "(" * 500, "3", "(True,)", "(1.5,)", "None")
    )
    order = chance.choice(("False", "True", "2"))
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode() + b"\n"
    told = len(header) if chance.random() < 0.9 else chance.choice(_NUMBERS) & 0xFFFFFFFF
    version = chance.choice(((1, 0), (2, 0), (3, 0)))
    size = struct.pack("<H", told & 0xFFFF) if version == (1, 0) else struct.pack("<I", told)
    return b"\x93NUMPY" + bytes(version) + size + header + seed[-64:]


def odd_zip(seed: bytes, chance: Random, inner: Any) -> bytes:
    """An archive that is whole and whose members are not, or whose directory lies."""
    buffer = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(seed)) as old, zipfile.ZipFile(buffer, "w") as new:
            names = old.namelist()
            changed = chance.choice(names)
            for name in names:
                content = old.read(name)
                if name == changed:
                    content = inner(name, content, chance)
                packed = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
                new.writestr(zipfile.ZipInfo(name), content, packed)
                if chance.random() < 0.05:
                    new.fp.write(bytes(7))  # type: ignore[union-attr]
    except (zipfile.BadZipFile, OSError, ValueError):
        return mutated(seed, chance)
    content = bytearray(buffer.getvalue())
    if chance.random() < 0.5:
        start = content.rfind(b"PK\x01\x02")
        # Sizes, method and place of a member, or of the directory itself.
        place = chance.choice((start + 10, start + 20, start + 24, start + 28, start + 42, len(content) - 10, len(content) - 6))
        struct.pack_into("<I", content, max(0, min(place, len(content) - 4)), chance.choice(_NUMBERS) & 0xFFFFFFFF)
    return bytes(content)


_PUSH = [
    b"N",
    b"\x88",
    b"\x89",
    b"K\x02",
    b"M\x00\x01",
    b"J\xff\xff\xff\x7f",
    b"\x8a\x08" + b"\xff" * 8,
    b"G?\xf0" + bytes(6),
    b"]",
    b"}",
    b")",
    b"\x8f",
    b"X\x01\x00\x00\x00a",
    b"X\x07\x00\x00\x00storage",
    b"\x8c\x03key",
    b"C\x02ab",
    b"I5\n",
    b"F1.5\n",
]
_NAMES = [
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"ctorch._utils\n_rebuild_tensor_v3\n",
    b"ctorch._utils\n_rebuild_parameter\n",
    b"ctorch._tensor\n_rebuild_from_type_v2\n",
    b"ctorch\nFloatStorage\n",
    b"ctorch\nUntypedStorage\n",
    b"ctorch\nfloat32\n",
    b"ccollections\nOrderedDict\n",
    b"ctorch\nSize\n",
    b"c_codecs\nencode\n",
    b"cbuiltins\nset\n",
    b"cbuiltins\nlist\n",
    b"cos\nsystem\n",
]
_WORK = [
    b"(",
    b"(",
    b"t",
    b"l",
    b"d",
    b"\x85",
    b"\x86",
    b"\x87",
    b"a",
    b"e",
    b"s",
    b"u",
    b"R",
    b"R",
    b"R",
    b"\x81",
    b"\x92",
    b"b",
    b"Q",
    b"2",
    b"0",
    b"1",
    b"\x94",
    b"q\x00",
    b"q\x01",
    b"h\x00",
    b"h\x01",
    b"\x93",
    b"\x90",
    b"\x91",
]


def odd_pickle(_seed: bytes, chance: Random) -> bytes:
    """Instructions in any order, and the known ways to make much of little."""
    # Some of these take a second each.
    way = chance.randrange(100)
    if way == 0:
        return _shared(chance.choice((5, 50, 1000)), chance.choice((2, 6, 40)), chance)
    if way == 1:
        # Tuples in tuples, as the key of a dict.
        return b"\x80\x02}" + b")" + b"\x85" * chance.choice((3, 1000, 200_000)) + b"K\x01s."
    if way == 2:
        # A list and a dict that hold themselves.
        return b"\x80\x02" + chance.choice((b"]q\x00h\x00a.", b"}q\x00X\x01\x00\x00\x00ah\x00s.", b"]q\x00(h\x00h\x00h\x00e."))
    if way == 3:
        # Copies of a long list: three bytes each.
        copies = b"cbuiltins\nlist\nh\x00\x85R" * chance.choice((3, 200))
        return b"\x80\x02](" + b"N" * chance.choice((5, 50_000)) + b"eq\x00" + copies + b"."
    size = chance.choice((3, 10, 30, 100))
    body = b"".join(chance.choice(chance.choice((_PUSH, _PUSH, _NAMES, _WORK, _WORK, _WORK))) for _ in range(size))
    return b"\x80\x02" + body + b"."


def _shared(width: int, depth: int, chance: Random) -> bytes:
    """Dicts in dicts, each of which stands many times in the next: width to the power of depth places."""
    content = b"\x80\x02}"
    for _ in range(depth):
        keys = b"".join(b"X" + struct.pack("<I", 4) + f"{each:04d}".encode() + b"h\x00" for each in range(width))
        content += b"q\x000" + chance.choice((b"}(" + keys + b"u", b"](" + b"h\x00" * width + b"e"))
    return content + b"."


def spliced_pickle(seed: bytes, chance: Random) -> bytes:
    """The instructions of a real pickle, some left out, doubled or moved."""
    try:
        places = [place for _, _, place in pickletools.genops(seed) if place is not None]
    except (ValueError, UnicodeDecodeError):
        return mutated(seed, chance)
    parts = [seed[start:end] for start, end in zip(places, [*places[1:], len(seed)], strict=True)]
    for _ in range(chance.choice((1, 2, 5))):
        one, other = chance.randrange(len(parts)), chance.randrange(len(parts))
        way = chance.randrange(4)
        if way == 0:
            parts[one] = parts[other]
        elif way == 1:
            parts[one] = b""
        elif way == 2:
            parts[one] += chance.choice((*_PUSH, *_WORK))
        else:
            parts[one], parts[other] = parts[other], parts[one]
    return b"".join(parts)


def odd_journal(seed: bytes, chance: Random) -> bytes:
    """Whole frames with odd values."""
    frames, place = [], 0
    while place + 4 <= len(seed):
        length = int.from_bytes(seed[place : place + 4], "little")
        frames.append(seed[place + 4 : place + 4 + length])
        place += 4 + length
    for _ in range(chance.choice((1, 2, 4))):
        number = chance.randrange(len(frames))
        rows = msgspec.msgpack.decode(frames[number])
        if chance.random() < 0.3:
            frames[number] = mutated(frames[number], chance)
            break
        frames[number] = msgspec.msgpack.encode(_replaced(rows, chance))
    return b"".join(len(each).to_bytes(4, "little") + each for each in frames)


_STATEMENTS = (
    "CREATE VIEW v AS SELECT 1",
    "DROP TABLE step",
    "CREATE TRIGGER t AFTER INSERT ON step BEGIN SELECT 1; END",
    "ALTER TABLE step ADD COLUMN more INTEGER GENERATED ALWAYS AS (id + 1)",
    "CREATE INDEX i ON step (abs(loss))",
    "DROP TABLE meta",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
    "ALTER TABLE step RENAME TO other",
    "PRAGMA user_version = 5",
    "PRAGMA journal_mode = WAL",
    "DELETE FROM location",
    "DELETE FROM module",
    "CREATE TABLE more (x)",
    "DROP TABLE step; CREATE VIEW step AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x AS id FROM c",
)


def odd_database(seed: bytes, chance: Random) -> bytes:
    """A whole database with odd values, tables and programs."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.deserialize(seed)
        for _ in range(chance.choice((1, 1, 2, 5))):
            if chance.random() < 0.15:
                connection.executescript(chance.choice(_STATEMENTS))
                continue
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            (table,) = chance.choice(tables)
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            value = _sql_value(chance)
            connection.execute(f"UPDATE OR REPLACE {table} SET {chance.choice(columns)} = ?", (value,))
        return connection.serialize()
    except (sqlite3.Error, OverflowError):
        return mutated(seed, chance)
    finally:
        connection.close()


def _sql_value(chance: Random) -> Any:
    way = chance.randrange(5)
    if way == 0:
        return chance.choice((0, -1, 1, 7, (1 << 63) - 1, -(1 << 63), 1.5, 1e308, float("inf"), None))
    if way == 1:
        return chance.choice(_TEXTS)
    if way == 2:
        return chance.randbytes(chance.choice((0, 1, 7, 8, 256)))
    return json.dumps(odd_value(chance))
