"""Map files: a JSON object of names, mine to reference."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueline.errors import TruelineError


def read_map(path: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except OSError as problem:
        raise TruelineError(f"The map {path} cannot be read ({problem.strerror}). Write one with: --write-map FILE") from problem
    except (msgspec.DecodeError, RecursionError) as problem:
        raise TruelineError(
            f'{path} is no map of names ({problem}). Expected a JSON object such as {{"conv1.weight": "features.0.weight"}}.'
        ) from problem


def write_map(pairs: dict[str, str], path: Path) -> None:
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(pairs), indent=2) + b"\n")
    except OSError as problem:
        raise TruelineError(f"The map cannot be written to {path} ({problem.strerror}). Give another file.") from problem
