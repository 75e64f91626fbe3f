"""Names that stand for several tensors one after another (`q.weight+k.weight`), or for a part of one (`qkv.weight[0/3]`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BETWEEN = "+"
_PART = re.compile(r"^(.*)\[(\d+)/(\d+)\]$")


def together(names: list[str]) -> str:
    return _BETWEEN.join(names)


def parts_of(name: str) -> list[str]:
    return name.split(_BETWEEN)


def in_parts(mine: str, reference: str) -> dict[str, str]:
    """My parameters and what they take the place of: parts of the reference's where mine are several."""
    parts = parts_of(mine)
    if len(parts) == 1:
        return {mine: reference}
    return {part: f"{reference}[{number}/{len(parts)}]" for number, part in enumerate(parts)}


def first_of(name: str) -> str:
    """A parameter that a name stands for, or is a part of."""
    return (found[1] if (found := _PART.match(name)) else name).partition(_BETWEEN)[0]


def content_of(name: str, get: Callable[[str], NDArray[Any] | None], *, axis: int = 0) -> NDArray[Any] | None:
    """What a name stands for: a tensor, several one after another, or a part of one; None where one of them is missing."""
    names = parts_of(name)
    if len(names) > 1:
        parts = [get(each) for each in names]
        known = [part for part in parts if part is not None and part.ndim]
        return np.concatenate(known, axis=axis) if len(known) == len(parts) else None
    part = _PART.match(name)
    if part is None:
        return get(name)
    whole, number, count = get(part[1]), int(part[2]), int(part[3])
    if whole is None or not whole.ndim or not count or number >= count or whole.shape[axis] % count:
        return None
    return np.split(whole, count, axis=axis)[number]
