"""Dependencies: the bounds, the versions that the tests are made with, what is installed, and the page that explains them."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
GIVEN_OUT = [("", line) for line in PROJECT["dependencies"]] + [
    (extra, line) for extra, lines in EXTRAS.items() if extra != "dev" for line in lines
]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)", line) for line in lines if not line.startswith("#")]
    assert all(found), "a line of constraints.txt is a name and a version, without address or path"
    return {canonicalize_name(match[1]): match[2] for match in found if match}


def lowest(line: str) -> str | None:
    return next((each.version for each in Requirement(line).specifier if each.operator == ">="), None)


@pytest.mark.parametrize("line", [*PROJECT["dependencies"], *(line for lines in EXTRAS.values() for line in lines)])
def test_what_is_asked_for_is_pinned_within_its_bounds(line: str) -> None:
    wanted = Requirement(line)
    assert wanted.specifier.contains(pins()[canonicalize_name(wanted.name)])


def test_what_is_installed_is_what_is_pinned() -> None:
    installed = {canonicalize_name(each.metadata["Name"]): Version(each.version) for each in metadata.distributions()}
    others = {
        name: str(installed.get(name)) for name, version in pins().items() if (found := installed.get(name)) is None
        or found.public != version
    }  # fmt: skip
    assert not others, "these versions are not those of constraints.txt: make setup"


def test_what_depends_on_it_is_pinned_too() -> None:
    """Whatever comes with a dependency comes in a known version."""
    known = pins()
    waiting, seen = [Requirement(line) for line in [*PROJECT["dependencies"], *EXTRAS["dev"], "torch"]], set[str]()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in seen:
            continue
        seen.add(name)
        assert name in known, f"{name} is not in constraints.txt"
        needs = [Requirement(line) for line in metadata.requires(name) or ()]
        waiting += [each for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})]


@pytest.mark.parametrize(("extra", "line"), GIVEN_OUT)
def test_the_page_says_why_each_bound_is_there(extra: str, line: str) -> None:
    name, bound = Requirement(line).name, lowest(line)
    rows = [
        [cell.strip() for cell in row.strip("|\n ").split("|")]
        for row in (ROOT / "docs" / "dependencies.md").read_text().splitlines()
        if row.startswith("|")
    ]
    place = 1 if extra else 0
    (row,) = [row for row in rows if row[place] == name and (not extra or row[0] == extra)]
    assert row[place + 1], "what it is for"
    assert row[-1], "why this bound"
    if bound is not None:
        assert row[place + 2] == bound
    else:
        # One that is asked for elsewhere with its lower bound.
        assert any(Requirement(other).name == name and lowest(other) == row[place + 2] for _, other in GIVEN_OUT)


def test_setup_installs_what_is_pinned() -> None:
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "$(BIN)/python -m pip install" in line]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in line for line in installs)
    # torch first and alone.
    assert installs[0].split()[-1] == "torch"
