"""A planted difference: text edits of one script, each of which must fit exactly once, and what is expected of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.differences._kind import KINDS, Kind


class EditMisfit(ValueError):
    """The old text of an edit is not in the script exactly once."""


@dataclass(frozen=True)
class Edit:
    """Replace `old` with `new`; an empty `new` deletes the lines that `old` stands on."""

    old: str
    new: str


@dataclass(frozen=True)
class Difference:
    """One difference planted in the `refactor` or the `port` of one model."""

    kind: Kind
    edits: tuple[Edit, ...]
    modules: frozenset[str | None]
    """The modules that are right, as the script names them, the whole model by its variable; None stands for "no module"."""
    effect: str
    """What an engineer would see of it in the numbers."""
    also: tuple[str, ...] = ()
    """Parts of other lines that are the right place too; for what was deleted, the only ones."""


@dataclass(frozen=True)
class Planted:
    """A script with its difference, and the lines where it is."""

    text: str
    lines: tuple[int, ...]


def difference(
    kind: str, edits: Edit | tuple[Edit, ...], effect: str, modules: Iterable[str | None] = (None,), also: tuple[str, ...] = ()
) -> Difference:
    every = edits if isinstance(edits, tuple) else (edits,)
    return Difference(KINDS[kind], every, frozenset(modules), effect, also)


def applied(text: str, edit: Edit) -> tuple[str, int | None]:
    """The text with the edit made, and the line that changed; no line where lines were deleted."""
    if text.count(edit.old) != 1:
        raise EditMisfit(f"Expected {edit.old!r} exactly once in the script. Found it {text.count(edit.old)} times.")
    start = text.index(edit.old)
    if edit.new:
        shared = next((i for i, (a, b) in enumerate(zip(edit.old, edit.new, strict=False)) if a != b), 0)
        changed = text[:start] + edit.new + text[start + len(edit.old) :]
        return changed, changed.count("\n", 0, start + shared) + 1
    begin, end = text.rfind("\n", 0, start) + 1, text.index("\n", start + len(edit.old)) + 1
    return text[:begin] + text[end:], None


def planted(text: str, made: Difference) -> Planted:
    """Make all edits of a difference. No edit may add lines, so that the lines of the earlier ones hold."""
    lines = set()
    for edit in made.edits:
        text, line = applied(text, edit)
        if line is not None:
            lines.add(line)
    lines |= {line_of(text, part) for part in made.also}
    return Planted(text, tuple(sorted(lines)))


def line_of(text: str, part: str) -> int:
    """The one line that this part stands on."""
    if text.count(part) != 1:
        raise EditMisfit(f"Expected {part!r} exactly once in the planted script. Found it {text.count(part)} times.")
    return text.count("\n", 0, text.index(part)) + 1
