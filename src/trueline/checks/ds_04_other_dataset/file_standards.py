"""What a file's content should be: checksums that lie beside it, and published ones of standard datasets."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec

from trueline import limits
from trueline.errors import TruelineError
from trueline.reading import open_regular, read_whole, reading
from trueline.store.manifest import read as read_manifest

_SUMS = re.compile(r"^(md5sums?|sha1sums?|sha256sums?|sha512sums?|checksums?|manifest)(\.(txt|md5|sha256|json))?$", re.IGNORECASE)
_SINGLE = (".md5", ".sha1", ".sha256", ".sha512")
_BY_LENGTH = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}
_GNU = re.compile(r"^\\?([0-9a-fA-F]{32,128})\s+[* ]?(.+)$")
_BSD = re.compile(r"^\w+ \((.+)\) = ([0-9a-fA-F]{32,128})$")
_NAMES = ("path", "name", "file", "filename")
_SIZES = ("size", "bytes", "length")
# Files of the extracted archives, whose content is the same everywhere (MD5, as torchvision checks them).
_PUBLISHED = {
    "cifar-10-batches-py": {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
    },
    "cifar-100-python": {"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
}


class Standard(msgspec.Struct, frozen=True):
    """The checksum that a file should have, and who says so. `size` where that is known too."""

    kind: str
    checksum: str
    source: str
    size: int | None = None


def standard_beside(path: Path) -> Standard | None:
    """A checksum in the file's own folder or the one above, or a published one."""
    for folder in (path.parent, path.parent.parent):
        name = path.relative_to(folder).as_posix()
        for sums in _sum_files(folder):
            found = _entries(sums).get(name)
            if found is not None:
                return found
    for ending in _SINGLE:
        single = path.with_name(path.name + ending)
        if single.is_file():
            words = _text(single).split()
            if words and len(words[0]) in _BY_LENGTH and re.fullmatch(r"[0-9a-fA-F]+", words[0]):
                return Standard(_BY_LENGTH[len(words[0])], words[0].lower(), single.name)
    known = _PUBLISHED.get(path.parent.name, {}).get(path.name)
    return None if known is None else Standard("md5", known, f"the published checksum of {path.parent.name}")


def _sum_files(folder: Path) -> list[Path]:
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if _SUMS.match(path.name) and path.is_file() and path.stat().st_size < limits.CHECKSUMS_BYTES
        )
    except OSError:
        return []


def _entries(path: Path) -> dict[str, Standard]:
    if path.suffix == ".json":
        try:
            files = read_manifest(path).files
        except TruelineError:
            return _of_other_json(path)
        return {entry.path: Standard("md5", entry.md5.lower(), path.name, entry.size) for entry in files}
    found = {}
    for line in _text(path).splitlines():
        gnu, bsd = _GNU.match(line.strip()), _BSD.match(line.strip())
        pair = (gnu[2], gnu[1]) if gnu else (bsd[1], bsd[2]) if bsd else None
        if pair is not None and len(pair[1]) in _BY_LENGTH:
            found[pair[0].removeprefix("./")] = Standard(_BY_LENGTH[len(pair[1])], pair[1].lower(), path.name)
    return found


def _of_other_json(path: Path) -> dict[str, Standard]:
    """Checksums as people write them: by file name, alone or beside a size, or a list of such entries with their names."""
    try:
        with reading(path):
            content = msgspec.json.decode(read_whole(path, limits.CHECKSUMS_BYTES))
    except TruelineError:
        return {}
    if isinstance(content, dict) and isinstance(content.get("files"), dict | list):
        content = content["files"]
    if isinstance(content, list):
        named = [entry for entry in content if isinstance(entry, dict)]
        content = {next((entry[key] for key in _NAMES if isinstance(entry.get(key), str)), ""): entry for entry in named}
    if not isinstance(content, dict):
        return {}
    found = {}
    for name, entry in content.items():
        values = list(entry.values()) if isinstance(entry, dict) else [entry]
        sums = [value for value in values if isinstance(value, str) and re.fullmatch(r"[0-9a-fA-F]+", value)]
        checksum = next((value for value in sums if len(value) in _BY_LENGTH), None)
        size = next((entry[key] for key in _SIZES if isinstance(entry.get(key), int)), None) if isinstance(entry, dict) else None
        if checksum is not None:
            found[str(name)] = Standard(_BY_LENGTH[len(checksum)], checksum.lower(), path.name, size)
    return found


def _text(path: Path) -> str:
    """Nothing where it cannot be read."""
    try:
        with reading(path):
            return read_whole(path, limits.CHECKSUMS_BYTES).decode(errors="replace")
    except TruelineError:
        return ""


def checksum_of(path: Path, kind: str) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()
