"""Dataset differs from the standard one

## What it checks
The files that the run really opened: whether each has the size and content that a manifest, a checksum beside it or a
published checksum says it should have, and whether it is complete by its own header, checksum or end marker.

## Why it hurts accuracy
A copy that was cut off, an older version, or a file exchanged by accident trains a model on other data than the one it is
compared with. Nothing fails: the accuracy is merely lower.

## Method
Every file that the script opens for reading is noted with its size and time. Files that the script wrote itself, checkpoints,
logs, caches and configuration are left out. Then, in this order:

- *Manifest*: `trueline check RUN --manifest FILE` (as `trueline data PATH --manifest FILE` writes it): opened files are
  matched by their path from its end; sizes and MD5 are compared, and files of the manifest that are not on the disk are
  missing.
- *Checksums beside the data*: MD5SUMS, SHA256SUMS, checksums.txt, `*.md5`, `*.sha256`, a manifest.json.
- *Published checksums* of CIFAR-10 and CIFAR-100 as extracted.
- *The file itself*: length against the header (idx, npy), checksums (gzip, zip, npz), end markers (png, jpeg), a table whose
  last line breaks off.

Contents are read when the run is checked, up to 2 GB; a file that changed since the run is compared by its recorded size only.

## Evidence
Each file that differs with what was expected and found, the line that opened it, and how many files agree.

## Limits
Without a standard only damage can be seen. Files opened by native code (parquet, HDF5) or in worker processes are not noted.

## What to do
Copy or download the file again, compare its checksum with the source's, and keep a manifest with the dataset.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import msgspec

from trueline.checks.base import Item
from trueline.checks.ds_04_other_dataset.file_integrity import damage_of
from trueline.checks.ds_04_other_dataset.file_standards import Standard, checksum_of, standard_beside
from trueline.model import Evidence, Finding, Location
from trueline.store import MANIFEST_FILE, Run
from trueline.store.manifest import Manifest
from trueline.store.manifest import read as read_manifest
from trueline.views.parameters import listed

item = Item(__name__, __doc__)

CONSEQUENCES = ("ds.01", "ds.02", "ds.03")
RANK = 37

_MOST_BYTES = 2 << 30
_NOT_DATA = {
    ".pt", ".pth", ".ckpt", ".safetensors", ".onnx", ".log", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".md5", ".sha1", ".sha256",
    ".sha512", ".lock", ".tmp", ".so", ".sh", ".md", ".ttf", ".sqlite", ".journal", ".ipynb",
}  # fmt: skip
_NOT_DATA_FOLDERS = {
    "__pycache__",
    ".cache",
    "cache",
    ".git",
    "logs",
    "checkpoints",
    ".trueline",
    "runs",
    "wandb",
    "node_modules",
    "etc",
}

_SYSTEM = ("/usr/", "/etc/", "/lib", "/var/lib/", "/run/", "/opt/")


class Opened(msgspec.Struct, frozen=True):
    """A data file of the run, as it was when it was opened. `unchanged`: the disk still has it with that size and time; `own`:
    the script wrote it itself, which makes it data only where a checksum beside it says so."""

    path: Path
    size: int | None
    location: Location | None
    unchanged: bool
    own: bool


class Difference(msgspec.Struct, frozen=True):
    path: str
    words: str
    location: Location | None
    certain: float


def conclude(run: Run) -> Finding:
    opened = _data_files(run)
    if not opened:
        return item.not_applicable("The script opened no data files that could be seen.")
    manifest = run.directory / MANIFEST_FILE
    if manifest.is_file():
        return _against_manifest([file for file in opened if not file.own], read_manifest(manifest))
    standards = {file.path: found for file in opened if (found := standard_beside(file.path)) is not None}
    read = _affordable(opened)
    with ThreadPoolExecutor(4) as pool:
        compared = list(
            pool.map(lambda file: _compared(file, standards[file.path], read), [f for f in opened if f.path in standards])
        )
        damaged = list(pool.map(lambda file: _damaged(file, read), [file for file in opened if file.path not in standards]))
    wrong = [one for one in (*compared, *damaged) if one is not None]
    limits = _limits(opened, sum(path in read for path in standards), read)
    if wrong:
        return _problem(wrong, len(opened), limits)
    if unread := [path for path in standards if path not in read]:
        return _not_read(unread)
    if not standards:
        return item.not_checked(
            f"there is no standard to compare the {len(opened)} opened files with; none of them is damaged by its own account. "
            "Make one with: trueline data PATH --manifest FILE"
        )
    return item.no_problem(
        f"{len(standards)} of {len(opened)} opened files have the content that a checksum beside them asks for.", limits=limits
    )


def _data_files(run: Run) -> list[Opened]:
    written = {event.detail.get("path") for event in run.events_of("file_written")}
    found: dict[Path, Opened] = {}
    for event in run.events_of("file_opened"):
        path = Path(str(event.detail.get("path")))
        folders = set(path.parts[:-1]) - set(Path(run.info.cwd).parts)
        own = str(path) in written
        if (
            (own and standard_beside(path) is None)
            or str(path).startswith(_SYSTEM)
            or path.suffix.lower() in _NOT_DATA
            or folders & _NOT_DATA_FOLDERS
            or path.name.startswith(".")
        ):
            continue
        size = event.detail.get("size")
        try:
            status = path.stat()
            same = path.is_file() and status.st_size == size and event.detail.get("mtime") in (None, status.st_mtime)
        except OSError:
            same = False
        found[path] = Opened(path, size, event.location, same, own)
    return list(found.values())


def _affordable(opened: list[Opened]) -> set[Path]:
    """The files that are read, smallest first, within the limit."""
    chosen, total = set(), 0
    for file in sorted((file for file in opened if file.unchanged), key=lambda file: file.size or 0):
        total += file.size or 0
        if total > _MOST_BYTES:
            break
        chosen.add(file.path)
    return chosen


def _compared(file: Opened, standard: Standard, read: set[Path]) -> Difference | None:
    if standard.size is not None and file.size is not None and standard.size != file.size:
        kind = "cut off" if file.size < standard.size else "longer"
        words = f"{kind}: {file.size:,} bytes, where {standard.source} asks for {standard.size:,}"
        return Difference(str(file.path), words, file.location, 0.97)
    if file.path not in read:
        return None
    actual = checksum_of(file.path, standard.kind)
    if actual == standard.checksum:
        return None
    damage = damage_of(file.path)
    words = f"its {standard.kind.upper()} is {actual[:12]}…, where {standard.source} asks for {standard.checksum[:12]}…"
    return Difference(str(file.path), words if damage is None else f"{words}, and {damage}", file.location, 0.95)


def _damaged(file: Opened, read: set[Path]) -> Difference | None:
    damage = damage_of(file.path) if file.path in read else None
    return None if damage is None else Difference(str(file.path), damage, file.location, 0.85)


def _against_manifest(opened: list[Opened], manifest: Manifest) -> Finding:
    entries = {entry.path: entry for entry in manifest.files}
    matched: dict[str, Opened] = {}
    roots: dict[Path, int] = {}
    for file in opened:
        parts = file.path.parts
        for start in range(1, len(parts)):
            name = PurePosixPath(*parts[start:]).as_posix()
            if name in entries:
                matched[name] = file
                root = Path(*parts[:start])
                roots[root] = roots.get(root, 0) + 1
                break
    if not matched:
        return item.not_checked(f"none of the {len(opened)} files that were opened is named in the manifest.")
    read = _affordable(list(matched.values()))
    wrong = []
    for name, file in matched.items():
        entry = entries[name]
        found = _compared(file, Standard("md5", entry.md5.lower(), "the manifest", entry.size), read)
        if found is not None:
            wrong.append(found)
    root = max(roots, key=lambda path: roots[path])
    missing = [name for name in entries if name not in matched and not (root / name).exists()]
    line = next(iter(matched.values())).location
    wrong += [Difference(name, f"missing in {root}", line, 0.9) for name in missing]
    limits = _limits(opened, len(matched), read)
    if wrong:
        return _problem(wrong, len(opened), limits)
    if unread := [file.path for file in matched.values() if file.path not in read]:
        return _not_read(unread)
    return item.no_problem(
        f"{len(matched)} opened files are as the manifest has them, of {len(entries)} that it names.",
        limits=limits,
        confidence=0.97,
    )


def _not_read(files: list[Path]) -> Finding:
    """A file that has a standard and was not read: those that were say nothing of it."""
    return item.not_checked(
        f"{listed(path.name for path in files)} could not be compared with a checksum: changed since the run, or beyond 2 GB."
    )


def _problem(wrong: list[Difference], opened: int, limits: str) -> Finding:
    first = max(wrong, key=lambda one: one.certain)
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    return item.problem(
        f"{Path(first.path).name} is not what it should be: {first.words}{more}.",
        confidence=first.certain,
        evidence=[
            *(Evidence(f"{one.path}: {one.words}.", {"path": one.path}, None, one.location) for one in wrong[:20]),
            Evidence(f"{len(wrong)} files differ; {opened} were opened.", {"differ": len(wrong), "opened": opened}),
        ],
        location=first.location,
        fix="Copy or download the file again and compare its checksum with that of the source.",
        limits=limits,
    )


def _limits(opened: list[Opened], compared: int, read: set[Path]) -> str:
    unread = sum(file.path not in read for file in opened)
    rest = f" {unread} were not read: changed since the run, or beyond 2 GB." if unread else ""
    return f"Any change in {compared} files with a standard would have been seen; in the others only damage to their form.{rest}"
