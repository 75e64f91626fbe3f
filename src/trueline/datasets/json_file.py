"""JSON files: one object per line, an array of objects, or an object of columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from trueline import limits
from trueline.datasets.columns import Chunk
from trueline.datasets.rows import ROWS, Row, columns_of_rows
from trueline.datasets.table import Table
from trueline.errors import TruelineError, Unreadable
from trueline.reading import Bounded, open_regular, read_whole, shortened

_BLOCK = 1 << 20
_AFTER = re.compile(r"[ \t\r\n,]*")
# Rows are handed on when they take so much in the file.
_BYTES = 8 << 20


def json_table(path: Path) -> Table:
    with open_regular(path) as file:
        start = file.read(_BLOCK)
    if not start.strip():
        raise TruelineError(
            f"{path} is empty: Expected JSON objects, one per line, or an array of them. Check how it was written."
        )
    opening = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if opening == b"[":
        rows = _array_rows
    elif opening == b"{":
        rows = _line_rows if _is_lines(start) else _column_rows
    else:
        raise TruelineError(f"{path} does not start with {{ or [. Expected JSON objects, one per line, or an array of them.")
    return Table(path.name, lambda: _chunks(path, rows(path)), [path])


def _is_lines(start: bytes) -> bool:
    line, newline, rest = start.strip().partition(b"\n")
    try:
        first = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return bool(newline) and rest.lstrip().startswith(b"{")
    return bool(rest.strip()) or not _is_columns(first)


def _chunks(path: Path, rows: Iterator[tuple[Row, int]]) -> Iterator[Chunk]:
    """`rows` come with the place in the file at which they end."""
    size = path.stat().st_size
    batch: list[Row] = []
    names: set[str] = set()
    place = total = start = 0
    for row, place in rows:
        batch.append(row)
        names.update(row)
        if len(names) > limits.JSON_FIELDS:
            raise Unreadable(f"its objects have more than {limits.JSON_FIELDS:,} different keys")
        if len(batch) == ROWS or place - start > _BYTES or len(batch) * len(names) > limits.JSON_CELLS:
            yield Chunk(columns_of_rows(batch), len(batch), min(1.0, place / size))
            total, batch, start = total + len(batch), [], place
    if batch:
        yield Chunk(columns_of_rows(batch), len(batch), 1.0)
    elif not total:
        raise TruelineError(f"{path} holds no objects. Check how it was written.")


def _line_rows(path: Path) -> Iterator[tuple[Row, int]]:
    place = 0
    # Python writes NaN and Infinity into JSON; msgspec follows the standard and refuses them.
    decode = msgspec.json.Decoder().decode
    with open_regular(path) as file:
        bounded = Bounded(file, limits.JSON_OBJECT_BYTES)
        for number, line in enumerate(iter(bounded.readline, b""), 1):
            place += len(line)
            content = line.strip().removeprefix(b"\xef\xbb\xbf")
            if not content:
                continue
            try:
                value = decode(content)
            except (msgspec.DecodeError, UnicodeDecodeError):
                value = _python_json(content, f"{path}, line {number}")
            yield _row(value, f"{path}, line {number}"), place


def _python_json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except UnicodeDecodeError as problem:
        raise TruelineError(f"{where}: not UTF-8 ({problem.reason}). Convert the file to UTF-8.") from problem
    except json.JSONDecodeError as problem:
        shown = content[:60].decode(errors="replace")
        raise TruelineError(f"{where}: not JSON ({problem}). Received {shown!r}. Mend or remove the line.") from problem


def _row(value: Any, where: str) -> Row:
    """Objects inside an object become fields of their own, named `outer.inner`."""
    if not isinstance(value, dict):
        raise TruelineError(f"{where}: Expected an object with one key per field. Received {type(value).__name__}.")
    row: Row = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            row |= {f"{key}.{name}": each for name, each in inner.items()}
        else:
            row[key] = inner
    return row


def _array_rows(path: Path) -> Iterator[tuple[Row, int]]:
    """The objects of an array, one after the other: the file may be larger than the memory."""
    decoder = json.JSONDecoder()
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            text = file.read(_BLOCK).lstrip()[1:]
            # `start`: of what has not been handed on yet; `place`: in the file.
            place, count, ended, start = 1, 0, False, 0
            while True:
                start = _AFTER.match(text, start).end()  # type: ignore[union-attr]
                if text.startswith("]", start):
                    return
                try:
                    value, stop = decoder.raw_decode(text, start)
                except json.JSONDecodeError as problem:
                    if len(text) - start > limits.JSON_OBJECT_BYTES:
                        raise Unreadable(
                            f"its object {count + 1} is not JSON ({problem.msg}), or longer than {limits.JSON_OBJECT_BYTES:,}"
                        ) from problem
                    more = "" if ended else file.read(_BLOCK)
                    ended = not more
                    if ended:
                        raise TruelineError(
                            f"{path}: not JSON after {count} objects ({problem.msg}). Was it cut short?"
                        ) from problem
                    text, start = text[start:] + more, 0
                    continue
                place, count = place + stop - start, count + 1
                yield _row(value, f"{path}, object {count}"), place
                start = stop
    except UnicodeDecodeError as problem:
        raise TruelineError(f"{path} is not UTF-8 (byte {problem.start}). Convert it to UTF-8.") from problem


def _is_columns(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(each, list) for each in value.values())


def _column_rows(path: Path) -> Iterator[tuple[Row, int]]:
    content = read_whole(path, limits.JSON_WHOLE_BYTES)
    if content.count(b"{") + content.count(b"[") > limits.JSON_WHOLE_OBJECTS:
        raise Unreadable(
            f"{path} is one object that holds more than {limits.JSON_WHOLE_OBJECTS:,}. Write the samples as JSON lines."
        )
    value = _python_json(content, str(path))
    if not _is_columns(value):
        lists = [each for each in value.values() if isinstance(each, list) and each and isinstance(each[0], dict)]
        if len(lists) != 1:
            raise TruelineError(
                f"{path} is one object that is neither columns (lists of equal length) nor holds one list of objects. "
                f"Received the keys {shortened(', '.join(map(repr, list(value)[:8])))}. Write the samples as JSON lines."
            )
        for row in lists[0]:
            yield _row(row, str(path)), len(content)
        return
    lengths = {len(each) for each in value.values()}
    if len(lengths) > 1:
        raise TruelineError(f"The columns of {path} have different lengths: {sorted(lengths)}. Expected one length.")
    for cells in zip(*value.values(), strict=True):
        yield dict(zip(value, cells, strict=True)), len(content)
