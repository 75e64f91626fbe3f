"""Map files: a JSON object of names, mine to reference."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueline import limits
from trueline.errors import TruelineError
from trueline.reading import read_whole, reading


def read_map(path: Path) -> dict[str, str]:
    advice = 'Expected a map: a JSON object such as {"conv1.weight": "features.0.weight"}. Write one with: --write-map FILE'
    with reading(path, advice):
        return msgspec.json.decode(read_whole(path, limits.MAP_BYTES), type=dict[str, str])


def write_map(pairs: dict[str, str], path: Path) -> None:
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(pairs), indent=2) + b"\n")
    except OSError as problem:
        raise TruelineError(f"The map cannot be written to {path} ({problem.strerror}). Give another file.") from problem
