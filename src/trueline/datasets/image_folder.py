"""Folders of images: a class per subfolder, or flat. Every image is decoded once: that is what shows a damaged one."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from trueline import limits
from trueline.datasets.columns import Chunk, Numbers, Texts, numbers_of
from trueline.datasets.optional import require
from trueline.datasets.table import Table
from trueline.reading import open_regular

IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
_AT_A_TIME = 256
_MOST_NAMED = 3


def image_table(root: Path, files: list[Path]) -> Table:
    require("PIL.Image", "to look into images")
    table = Table(root.name or str(root), lambda: iter(()), files, row_word="image")
    labelled = all(path.parent != root for path in files)
    if labelled:
        table.label = "class"
    table.read = lambda: _read(root, files, table, labelled=labelled)
    return table


def _read(root: Path, files: list[Path], table: Table, *, labelled: bool) -> Iterator[Chunk]:
    damaged: list[str] = []
    blank: list[str] = []
    too_large: list[str] = []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(files), _AT_A_TIME):
            some = files[start : start + _AT_A_TIME]
            looked = list(pool.map(_look_at, some))
            names = [path.relative_to(root).as_posix() for path in some]
            damaged += [f"{name} ({seen['damage']})" for name, seen in zip(names, looked, strict=True) if seen["damage"]]
            blank += [name for name, seen in zip(names, looked, strict=True) if seen["blank"]]
            too_large += [name for name, seen in zip(names, looked, strict=True) if seen["too_large"]]
            sizes = [seen["content"] for seen in looked]
            columns: dict[str, Numbers | Texts] = {
                "file": Texts.of(names, "id"),
                "image": Numbers(np.zeros(0), np.array(sizes, np.uint64), kind="image"),
                "width": numbers_of([seen["width"] for seen in looked]),
                "height": numbers_of([seen["height"] for seen in looked]),
                "mode": Texts.of([seen["mode"] for seen in looked]),
            }
            if labelled:
                columns["class"] = Texts.of([path.parent.name for path in some])
            yield Chunk(columns, len(some), (start + len(some)) / len(files))
    if damaged:
        table.faults.append(f"{_count(damaged, 'image')} cannot be decoded: {_named(damaged)}.")
    if too_large:
        table.notes.append(f"{_count(too_large, 'image')} too large to be decoded here: {_named(too_large)}.")
    if blank:
        table.notes.append(f"{_count(blank, 'image')} of one single colour: {_named(blank)}.")


def _look_at(path: Path) -> dict[str, Any]:
    """Size, mode and content hash of an image. A size of zero bytes is a damage, too."""
    image_module = require("PIL.Image", "to look into images")
    # A damaged image is told as such, not as one whose width is missing.
    seen: dict[str, Any] = {"width": 0.0, "height": 0.0, "mode": "unreadable", "damage": "", "blank": False, "too_large": False}
    with open_regular(path) as file:
        content = file.read(limits.IMAGE_BYTES)
        digest = xxhash.xxh3_64(content)
        while piece := file.read(1 << 20):
            digest.update(piece)
        seen |= {"content": digest.intdigest(), "too_large": file.tell() > limits.IMAGE_BYTES}
    if not content:
        return seen | {"damage": "no bytes"}
    if seen["too_large"]:
        return seen
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with image_module.open(io.BytesIO(content)) as image:
                seen |= {"width": float(image.width), "height": float(image.height), "mode": image.mode}
                # A JPEG is decoded at an eighth of its size where that does: all of its bytes are read all the same.
                image.draft(None, (max(1, image.width // 8), max(1, image.height // 8)))
                if image.width * image.height > limits.IMAGE_PIXELS:
                    return seen | {"too_large": True}
                extremes = image.getextrema()
    except Exception as problem:  # noqa: BLE001 - Pillow's decoders raise nearly everything on a damaged file
        return seen | {"damage": str(problem).replace(repr(io.BytesIO(content)), "the file")[:80]}
    bands = extremes if isinstance(extremes[0], tuple) else (extremes,)
    return seen | {"blank": all(low == high for low, high in bands)}


def _count(names: list[str], noun: str) -> str:
    return f"{len(names):,} {noun}{'' if len(names) == 1 else 's'}"


def _named(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (f", and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else "")
