"""Write docs/limits.md from the comments of src/trueline/limits.py.

Run it after a limit was added or changed: `.venv/bin/python docs/make_limits.py`. A test compares the page with the module, so
they cannot drift apart.
"""

from __future__ import annotations

import re
from pathlib import Path

from trueline import limits

PAGE = Path(__file__).parent / "limits.md"
_CONSTANT = re.compile(r"^([A-Z_]+) = ")
_UNITS = ((limits.GIB, "GiB"), (limits.MIB, "MiB"), (limits.KIB, "KiB"))
_INTRODUCTION = """\
# Limits of the readers

Made by `docs/make_limits.py` from `src/trueline/limits.py`, where all of them stand.

Files come from anywhere. A pickle of two kilobytes can describe gigabytes, a database can hold programs, and a pipe has no
end. A reader spends no more than what is set here, whatever a file says, and then refuses it with one message that names it
(exit code 2). Only files are opened: pipes, sockets and devices are refused. The limits lie well above what frameworks write;
if a file of yours is refused that should not be, tell us what wrote it.

What is not limited: the time for a file that really is large, and memory in proportion to a file's own size.
`make fuzz` tries the readers on damaged files (`tests/fuzz`).
"""


def limits_in_order() -> list[tuple[str, str, str]]:
    """Name, value in words and reason of each limit; a heading has no name."""
    found, comment = [], ""
    for line in Path(limits.__file__).read_text(encoding="utf-8").splitlines():
        if line.startswith("# ## "):
            found.append(("", "", line.removeprefix("# ## ")))
        elif line.startswith("# "):
            comment += f"{line.removeprefix('# ')} "
        elif constant := _CONSTANT.match(line):
            found.append((constant[1], _in_words(constant[1], getattr(limits, constant[1])), comment.strip()))
            comment = ""
    return found


def _in_words(name: str, value: int) -> str:
    if name.endswith("_BYTES"):
        return next((f"{value // size} {unit}" for size, unit in _UNITS if value >= size and not value % size), f"{value} bytes")
    return f"{value:,}"


def page() -> str:
    head = "\n| limit | value | why |\n|---|---|---|\n"
    text = _INTRODUCTION + head
    for name, value, why in limits_in_order():
        text += f"| `{name}` | {value} | {why} |\n" if name else f"\n## {why}\n{head}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
