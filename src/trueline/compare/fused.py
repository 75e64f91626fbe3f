"""One parameter on one side where the other has several: a joined projection of query, key and value."""

from __future__ import annotations

from collections import defaultdict

from trueline.compare.conventions import words_of

_MOST_PARTS = 4


def fused_parameters(joined: dict[str, tuple[int, ...]], split: dict[str, tuple[int, ...]]) -> list[str]:
    """Suggestions for what has no counterpart: parameters of `joined` whose length is that of several of `split`."""
    groups: dict[tuple[str, str, tuple[int, ...]], list[str]] = defaultdict(list)
    for name, shape in split.items():
        around = name.rsplit(".", 2)
        groups[around[0] if len(around) == 3 else "", _last_word(name), shape].append(name)
    found = []
    for name, shape in joined.items():
        fitting = [
            (around, parts)
            for (around, kind, part), parts in groups.items()
            if 2 <= len(parts) <= _MOST_PARTS and kind == _last_word(name) and _joins(part, len(parts), shape)
        ]
        if fitting:
            _, parts = max(fitting, key=lambda each: len(set(words_of(each[0])) & set(words_of(name))))
            found.append(
                f"{name} {list(shape)} may be {', '.join(parts)} ({list(split[parts[0]])} each) joined along the first axis. "
                "Split it, or join them, to compare."
            )
    return found


def _joins(part: tuple[int, ...], count: int, whole: tuple[int, ...]) -> bool:
    return bool(part) and len(part) == len(whole) and part[0] * count == whole[0] and part[1:] == whole[1:]


def _last_word(name: str) -> str:
    return words_of(name)[-1] if words_of(name) else name
