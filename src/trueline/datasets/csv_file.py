"""CSV and TSV files, read block by block.

Every field is read as text and turned into numbers here, so that a `?` in the last line of a column of numbers is counted as a
missing value instead of ending the pass.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from trueline import limits
from trueline.datasets.arrow import parsed_numbers, texts_of
from trueline.datasets.columns import Chunk, Column, Numbers
from trueline.datasets.optional import require
from trueline.datasets.table import Table
from trueline.errors import TruelineError, Unreadable
from trueline.reading import open_regular, words_of

_BLOCK = 4 << 20
_HEAD = 256 << 10
_DELIMITERS = ",;\t|"
_MOST_LINES_NAMED = 5
# A column is one of numbers when at least this share of what its first block holds is.
_MOSTLY = 0.5


def csv_table(path: Path, encoding: str | None = None) -> Table:
    head = _head(path, encoding or "utf-8-sig")
    delimiter = "\t" if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")) else _delimiter_of(head)
    first = _first_line(head, delimiter)
    table = Table(path.name, lambda: iter(()), [path])
    if _is_header(first):
        names = _unique([name.strip() for name in first])
    else:
        names = [f"column_{place}" for place in range(len(first))]
        table.notes.append(f"The first line of {path.name} holds values, not names: its fields are called column_0, column_1, …")
    table.read = lambda: _read(path, names, delimiter, encoding or "utf8", table, has_header=_is_header(first))
    return table


def columns_of(path: Path, encoding: str | None = None) -> tuple[str, ...]:
    """The names in the first line; empty for a file without them."""
    head = _head(path, encoding or "utf-8-sig")
    first = _first_line(head, _delimiter_of(head))
    return tuple(first) if _is_header(first) else ()


def _head(path: Path, encoding: str) -> str:
    try:
        with open_regular(path) as file, gzip.GzipFile(fileobj=file) if _is_packed(path) else file as stream:
            start = stream.read(_HEAD)
    except (OSError, EOFError, zlib.error) as problem:
        raise TruelineError(
            f"{path} cannot be read ({problem}). Check that it is a complete file that you may read."
        ) from problem
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) and encoding == "utf-8-sig":
        raise TruelineError(f"{path} is UTF-16, not UTF-8. Say so with: --encoding utf-16")
    try:
        # The last character may have been cut in two.
        head: str = start.decode(encoding, errors="strict" if len(start) < _HEAD else "ignore")
    except LookupError as problem:
        raise TruelineError(f"There is no encoding {encoding!r}. Expected a name such as utf-8 or latin-1.") from problem
    except UnicodeDecodeError as problem:
        raise _wrong_encoding(path, encoding) from problem
    if "\0" in head:
        raise TruelineError(f"{path} holds zero bytes: it is not a text file. Check that it is a CSV file and its --encoding.")
    if not head.strip():
        raise TruelineError(f"{path} is empty: Expected a CSV file with at least one line. Check how it was written.")
    return head


def _is_packed(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _first_line(head: str, delimiter: str) -> list[str]:
    with _long_fields():
        first = next(csv.reader(io.StringIO(head), delimiter=delimiter), [])
    if len(first) > limits.FIELDS:
        raise Unreadable(f"its first line has {len(first):,} fields, and no more than {limits.FIELDS:,} are read")
    return first


@contextmanager
def _long_fields() -> Iterator[None]:
    """Python's reader of CSV refuses fields of more than 128 KiB, which texts can have."""
    usual = csv.field_size_limit(_HEAD)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _delimiter_of(head: str) -> str:
    """The character that splits the first lines into most fields, and all of them into as many."""
    lines = [line for line in head.splitlines()[:21] if line.strip()]
    lines = lines[:-1] if len(lines) > 20 else lines
    best, most = ",", 1
    for delimiter in _DELIMITERS:
        with _long_fields():
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        usual = max(set(widths), key=widths.count)
        if usual > most and widths.count(usual) >= 0.8 * len(widths):
            best, most = delimiter, usual
    return best


def _is_header(cells: list[str]) -> bool:
    """Names are no numbers; one of them may be empty, as that of an index that was written without a name."""
    named = [cell.strip() for cell in cells]
    return bool(named) and not any(_is_number(cell) for cell in named) and named.count("") <= 1


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.lower() not in ("nan", "inf", "infinity")


def _unique(names: list[str]) -> list[str]:
    found: dict[str, None] = {}
    for place, name in enumerate(names):
        base = name or f"column_{place}"
        found[base if base not in found else f"{base} (column {place})"] = None
    return list(found)


def _read(path: Path, names: list[str], delimiter: str, encoding: str, table: Table, *, has_header: bool) -> Iterator[Chunk]:
    pa, pacsv = require("pyarrow", "to read CSV files"), require("pyarrow.csv", "to read CSV files")
    ragged: list[Any] = []

    def skip(row: Any) -> str:
        ragged.append((row.number, row.actual_columns))
        return "skip"

    size = path.stat().st_size
    most = max(limits.STREAMED_BYTES, limits.STREAMED_TIMES * size)
    kinds: dict[str, bool] = {}
    rows = unpacked = 0
    # What is not closed is never given back by Arrow: some ten kilobytes for each compressed file.
    with ExitStack() as opened:
        file = opened.enter_context(pa.OSFile(str(path)))
        packed = _is_packed(path)
        stream = opened.enter_context(pa.CompressedInputStream(file, "gzip")) if packed else file
        try:
            reader = opened.enter_context(
                pacsv.open_csv(
                    stream,
                    read_options=pacsv.ReadOptions(
                        block_size=_BLOCK, column_names=names, skip_rows=int(has_header), encoding=encoding, use_threads=False
                    ),
                    parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
                    convert_options=pacsv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()), null_values=[], strings_can_be_null=False
                    ),
                )
            )
            for batch in reader:
                rows += batch.num_rows
                unpacked += batch.nbytes
                if packed and unpacked > most:
                    raise Unreadable(f"it unpacks to more than {most:,} bytes from {size:,}")
                if batch.num_rows:
                    columns = {name: _column(name, batch.column(place), kinds) for place, name in enumerate(names)}
                    yield Chunk(columns, batch.num_rows, _done(file, size))
        except pa.ArrowInvalid as problem:
            if "utf" in str(problem).lower():
                raise _wrong_encoding(path, encoding) from problem
            if "Empty CSV" not in str(problem):
                raise TruelineError(f"{path} is not a CSV file that can be read: {words_of(problem)}") from problem
        except (UnicodeDecodeError, UnicodeError) as problem:
            raise _wrong_encoding(path, encoding) from problem
    _tell(table, path, names, ragged, rows)


def _tell(table: Table, path: Path, names: list[str], ragged: list[Any], rows: int) -> None:
    if not rows and not ragged:
        raise TruelineError(f"{path} holds a line of names and no rows. Check how it was written.")
    if not ragged:
        return
    if len(ragged) > rows:
        raise TruelineError(
            f"{len(ragged):,} of the {len(ragged) + rows:,} lines of {path} do not have {len(names)} fields as the first has; "
            f"line {ragged[0][0]} has {ragged[0][1]}. Check the delimiter and the quotes."
        )
    named = ", ".join(f"line {number} has {fields}" for number, fields in ragged[:_MOST_LINES_NAMED])
    more = f", and {len(ragged) - _MOST_LINES_NAMED:,} more" if len(ragged) > _MOST_LINES_NAMED else ""
    count = f"{len(ragged):,} lines do" if len(ragged) > 1 else "1 line does"
    table.faults.append(f"{count} not have the {len(names)} fields of the first line and cannot be read: {named}{more}.")


def _column(name: str, array: Any, kinds: dict[str, bool]) -> Column:
    if kinds.get(name) is False:
        return texts_of(array)
    numbers, count = parsed_numbers(array)
    if name not in kinds:
        present = len(array) - numbers.empty - numbers.blank
        if present and count < _MOSTLY * present and not _only_missing(numbers):
            kinds[name] = False
            return texts_of(array)
        if count:
            kinds[name] = True
    return numbers


def _only_missing(numbers: Numbers) -> bool:
    """Whether what is not a number is always the same one word: a column that is nearly all missing."""
    return len(numbers.words) == 1 and len(numbers) > sum(numbers.words.values())


def _done(file: Any, size: int) -> float | None:
    return min(1.0, file.tell() / size) if size else None


def _wrong_encoding(path: Path, encoding: str) -> TruelineError:
    name = "UTF-8" if encoding in ("utf8", "utf-8-sig") else encoding
    place = ""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8" if name == "UTF-8" else encoding)
            except UnicodeDecodeError as problem:
                place = f": line {number} holds the byte 0x{line[problem.start]:02x}"
                break
    return TruelineError(f"{path} is not {name}{place}. Give its encoding, as in --encoding latin-1, or convert it to UTF-8.")
