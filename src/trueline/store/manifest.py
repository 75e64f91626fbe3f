"""Manifests: the files of a dataset with their sizes and checksums, and how two of them differ.

A manifest is a JSON file, `{"schema": "trueline.manifest/1", "files": [{"path": …, "size": …, "md5": …, "xxh3": …}]}`. Paths are
relative to the root of the dataset, with forward slashes, so that a manifest made on one machine holds on every other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import xxhash

from trueline import limits
from trueline.errors import TruelineError
from trueline.reading import open_regular, read_whole, reading, shortened
from trueline.store.format import MANIFEST_FILE, replace_file

SCHEMA = "trueline.manifest/1"
_BLOCK = 1 << 20
_MOST_THREADS = 8

Progress = Callable[[int], None]


class FileEntry(msgspec.Struct, frozen=True):
    """One file. `md5` is what datasets are published with; `xxh3` is a quick checksum (128 bits) that may be missing."""

    path: str
    size: int
    md5: str
    xxh3: str | None = None


class Manifest(msgspec.Struct, frozen=True):
    files: list[FileEntry]
    schema: str = SCHEMA

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.files)


class Differences(msgspec.Struct, frozen=True):
    """How files differ from what was expected, by path: `truncated` ones are shorter than expected, `longer` ones longer,
    `changed` ones of the expected size with another content."""

    missing: list[str]
    truncated: list[str]
    longer: list[str]
    changed: list[str]
    extra: list[str]

    @property
    def total(self) -> int:
        return sum(map(len, (self.missing, self.truncated, self.longer, self.changed, self.extra)))


def make(root: Path, progress: Progress | None = None) -> Manifest:
    """The manifest of a folder (hidden files and folders left out) or of a single file. `progress` is told how many bytes
    have been read since it was last called; it may be called from several threads."""
    if not root.exists():
        raise TruelineError(f"There is no file or folder {str(root)!r} to make a manifest of. Check the path.")
    if root.is_file():
        return of_files([(root.name, root)], progress)
    return of_files([(path.relative_to(root).as_posix(), path) for path in files_under(root)], progress)


def of_files(named: Iterable[tuple[str, Path]], progress: Progress | None = None) -> Manifest:
    """The manifest of these files, each under the given name; read by several threads."""
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        entries = pool.map(lambda pair: _entry(pair[0], pair[1], progress), named)
        return Manifest(sorted(entries, key=lambda entry: entry.path))


def files_under(root: Path) -> list[Path]:
    """All files of a folder in a fixed order, without hidden ones."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(folder, name) for name in sorted(names) if not name.startswith(".")]
    return [path for path in found if path.is_file()]


def _entry(name: str, path: Path, progress: Progress | None) -> FileEntry:
    md5, fast = hashlib.md5(usedforsecurity=False), xxhash.xxh3_128()
    size = 0
    try:
        with open_regular(path) as file:
            while block := file.read(_BLOCK):
                md5.update(block)
                fast.update(block)
                size += len(block)
                if progress is not None:
                    progress(len(block))
    except OSError as problem:
        raise TruelineError(f"{path} cannot be read ({problem.strerror}). Check its permissions, or leave it out.") from problem
    return FileEntry(name, size, md5.hexdigest(), fast.hexdigest())


def write(manifest: Manifest, path: Path) -> None:
    try:
        path.write_bytes(_document(manifest))
    except OSError as problem:
        raise TruelineError(f"The manifest cannot be written to {path} ({problem.strerror}). Give another file.") from problem


def keep(manifest: Manifest, directory: Path) -> None:
    """With a run, which may be anybody's."""
    try:
        replace_file(directory / MANIFEST_FILE, _document(manifest))
    except OSError as problem:
        raise TruelineError(
            f"The manifest cannot be kept with the run: {directory} cannot be written ({problem.strerror}). Copy the run to a "
            "folder of your own first."
        ) from problem


def _document(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


def read(path: Path) -> Manifest:
    with reading(
        path, "Expected a manifest: JSON with files of path, size and md5, as `trueline data PATH --manifest FILE` writes it."
    ):
        manifest = msgspec.json.decode(read_whole(path, limits.MANIFEST_BYTES), type=Manifest)
    if manifest.schema != SCHEMA:
        raise TruelineError(
            f"{path} has the schema {shortened(manifest.schema)!r}. Expected {SCHEMA!r}: make it again with this Trueline."
        )
    return manifest


def differences(expected: Manifest, actual: Manifest) -> Differences:
    """Compare by path. Files of `actual` that are not expected are `extra`."""
    found: dict[str, list[str]] = {kind: [] for kind in ("missing", "truncated", "longer", "changed", "extra")}
    present = {entry.path: entry for entry in actual.files}
    for entry in expected.files:
        other = present.pop(entry.path, None)
        kind = "missing" if other is None else difference_of(entry, other)
        if kind is not None:
            found[kind].append(entry.path)
    found["extra"] = sorted(present)
    return Differences(**found)


def difference_of(expected: FileEntry, actual: FileEntry) -> str | None:
    """`truncated`, `longer` or `changed`; None for the same content."""
    if actual.size != expected.size:
        return "truncated" if actual.size < expected.size else "longer"
    return None if actual.md5.lower() == expected.md5.lower() else "changed"
