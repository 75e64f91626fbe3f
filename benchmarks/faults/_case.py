"""A script of the benchmark with what is expected of its diagnosis, and where the scripts come from.

A marker is a comment at the end of a line. `# <- fault` marks the line that the finding must name, or each of several that would
do; where no line can be named, `# <- module: NAME` (at the end of any line, or as a line of its own) gives the module. Markers
are removed before the script runs, and its name is a neutral one: neither may help the diagnosis.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
CASES = HERE / "cases"
BASES = HERE / "bases"
FRAMEWORKS = ("pytorch", "mindspore")
GRAPH_MODE = "MindSpore, graph mode"
STRANGERS = HERE.parents[1] / "tests" / "scripts" / "strangers"

SCRIPT = "train.py"
_MARKER = re.compile(r"[ \t]*# <- (?:(fault)|module: *(\S+))[ \t]*$")
_MINDSPORE = re.compile(r"^\s*(?:import|from) mindspore\b", re.MULTILINE)
_COMPILED = re.compile(r"\bGRAPH_MODE\b|\bjit\b")
_LAUNCH = re.compile(r"# launch: *((?:torchrun|msrun) .*)$")


@dataclass(frozen=True)
class Case:
    """One script to diagnose. `kind` is `faulty`, `healthy` or `reported`: the last must be reported and counts as neither."""

    name: str
    kind: str
    origin: str
    """`case`, `base`, `stranger` or `mutant`; `graph` for a case in graph mode that is recorded as it is."""
    files: dict[str, str]
    item: str | None = None
    lines: tuple[int, ...] = ()
    """The lines of the script that count as the right place, mostly one. With no line and no module, no place is expected."""
    module: str | None = None
    words: tuple[str, ...] = (SCRIPT,)
    """What follows `trueline diagnose`."""
    launch: tuple[str, ...] = ()
    """The words of torchrun or msrun and its options, for scripts of several processes."""
    note: str = ""
    """What was planted, in words."""

    @property
    def has_place(self) -> bool:
        return bool(self.lines or self.module)

    @property
    def framework(self) -> str:
        return "mindspore" if _MINDSPORE.search("\n".join(self.files.values())) else "pytorch"

    @property
    def way(self) -> str:
        """The framework, and the mode that the script asks for."""
        if self.framework == "pytorch":
            return "PyTorch"
        return GRAPH_MODE if _COMPILED.search("\n".join(self.files.values())) else "MindSpore, PyNative mode"


@dataclass(frozen=True)
class Unmarked:
    """A script without its markers, line for line where it was, and what they said."""

    text: str
    lines: tuple[int, ...]
    module: str | None
    launch: tuple[str, ...]


def unmark(text: str) -> Unmarked:
    """Take the markers and the launch line out of a script without moving a line."""
    kept: list[str] = []
    lines: list[int] = []
    module = None
    launch: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        plain = line
        if number == 1 and (found := _LAUNCH.match(line)):
            launch, plain = tuple(shlex.split(found[1])), ""
        if found := _MARKER.search(plain):
            plain = plain[: found.start()]
            if found[1]:
                lines.append(number)
            else:
                module = found[2]
        kept.append(plain)
    return Unmarked("\n".join(kept), tuple(lines), module, launch)


def case_of(path: Path) -> Case:
    """A script of `cases/<item>/`: its folder says the item, the first word of its name the kind."""
    unmarked = unmark(path.read_text(encoding="utf-8"))
    kind = path.stem.partition("_")[0]
    return Case(
        name=f"{path.parent.name}/{path.stem}",
        kind=kind,
        origin="case",
        files={SCRIPT: unmarked.text},
        item=path.parent.name.replace("_", "."),
        lines=unmarked.lines,
        module=unmarked.module,
        launch=unmarked.launch,
    )


def cases() -> list[Case]:
    """All scripts of `cases/`, by item and name."""
    paths = [path for kind in ("faulty", "healthy", "reported") for path in CASES.glob(f"*/{kind}_*.py")]
    return [case_of(path) for path in sorted(paths)]


def as_it_is(found: Iterable[Case]) -> list[Case]:
    """The scripts that ask for graph mode, once more: without the closer look in PyNative mode, nor a rerun that tr.07 needs."""
    return [
        replace(case, name=f"{case.name}@graph", words=("--no-rerun", *case.words), origin="graph")
        for case in found
        if case.way == GRAPH_MODE and not case.launch and case.item != "tr.07"
    ]


def bases() -> list[Case]:
    """The healthy scripts that faults are planted into; they count as healthy runs themselves."""
    return [_healthy("base", path.stem, {SCRIPT: path.read_text(encoding="utf-8")}) for path in sorted(BASES.glob("*.py"))]


def strangers() -> list[Case]:
    """The healthy scripts of the integration tests: single files, and packages that are started by their module `train`."""
    single = [_healthy("stranger", path.stem, {SCRIPT: path.read_text(encoding="utf-8")}) for path in STRANGERS.glob("*.py")]
    packages = [
        _healthy("stranger", folder.name, _package(folder), ("-m", f"{folder.name}.train"))
        for folder in STRANGERS.iterdir()
        if (folder / "train.py").exists()
    ]
    return sorted(single + packages, key=lambda case: case.name)


def _package(folder: Path) -> dict[str, str]:
    return {f"{folder.name}/{path.name}": path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}


def _healthy(origin: str, stem: str, files: dict[str, str], words: tuple[str, ...] = (SCRIPT,)) -> Case:
    return Case(name=f"{origin}s/{stem}", kind="healthy", origin=origin, files=files, words=words)


def only(found: Iterable[Case], wanted: list[str]) -> list[Case]:
    """The cases of these items, or whose name contains one of these words; all of them when nothing is wanted."""
    return [case for case in found if not wanted or any(word == case.item or word in case.name for word in wanted)]
