"""Call sites: the line of the user's own code, whatever library lies between."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from trueline.recorder.callsite import CallSites

CALLING = "def call(function):\n    return function()\n"


def define(file: str | Path, source: str, **names: Any) -> dict[str, Any]:
    """Run source text as if it were read from this file."""
    exec(compile(source, str(file), "exec"), names)  # noqa: S102 - stands for importing a module
    return names


def written(file: Path, source: str, **names: Any) -> dict[str, Any]:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source, encoding="utf-8")
    return define(file, source, **names)


@pytest.fixture
def sites(tmp_path: Path) -> CallSites:
    return CallSites(str(tmp_path))


def user_lines(sites: CallSites) -> list[tuple[str, int]]:
    return [(file, line) for _, file, line, _, _ in sites.new_rows]


def test_line_function_and_source(sites: CallSites, tmp_path: Path) -> None:
    source = "def forward():\n    x = 1\n    return here()  # the line\n"
    number = written(tmp_path / "pkg" / "net.py", source, here=sites.here)["forward"]()
    assert sites.new_rows == [(number, str(Path("pkg") / "net.py"), 3, "forward", "return here()  # the line")]


def test_a_line_is_described_once(sites: CallSites, tmp_path: Path) -> None:
    source = "pair = [here(), here()]\nlater = here()\n"
    names = written(tmp_path / "train.py", source, here=sites.here)
    assert names["pair"][0] == names["pair"][1] != names["later"]
    assert user_lines(sites) == [("train.py", 1), ("train.py", 2)]


def test_functions_on_one_line_share_it(sites: CallSites, tmp_path: Path) -> None:
    names = written(tmp_path / "train.py", "a, b = (lambda: here()), (lambda: [here()][0])\n", here=sites.here)
    assert names["a"]() == names["b"]()
    assert len(sites.new_rows) == 1


@pytest.mark.parametrize("folder", ["stdlib", "purelib"])
def test_library_frames_are_passed_over(sites: CallSites, tmp_path: Path, folder: str) -> None:
    library = define(Path(sysconfig.get_paths()[folder]) / "package" / "runner.py", CALLING)
    written(tmp_path / "train.py", "\nnumber = call(here)\n", here=sites.here, call=library["call"])
    assert user_lines(sites) == [("train.py", 2)]


def test_a_callback_is_the_users_though_a_library_calls_it(sites: CallSites, tmp_path: Path) -> None:
    library = define(Path(sysconfig.get_paths()["stdlib"]) / "runner.py", CALLING)
    written(tmp_path / "train.py", "def back():\n    return here()\n\ncall(back)\n", here=sites.here, call=library["call"])
    assert user_lines(sites) == [("train.py", 2)]


def test_code_without_a_file_is_nobodys(sites: CallSites, tmp_path: Path) -> None:
    evaluated = define("<string>", CALLING)
    written(tmp_path / "train.py", "\n\ncall(here)\n", here=sites.here, call=evaluated["call"])
    assert user_lines(sites) == [("train.py", 3)]


def test_nobodys_code_all_the_way_up(sites: CallSites) -> None:
    assert sites.of_frame(sites.user_frame(None)) is None
    assert sites.new_rows == []


@pytest.mark.parametrize("library_first", [False, True])
def test_a_copy_of_a_library_file_is_the_users(sites: CallSites, tmp_path: Path, library_first: bool) -> None:
    """Equal functions of two files are equal code objects to Python."""
    source = "def call(function):\n    return function()\n"
    copies: list[Callable[..., Any]] = [
        define(Path(sysconfig.get_paths()["purelib"]) / "timm" / "net.py", source)["call"],
        written(tmp_path / "net.py", source)["call"],
    ]
    for call in copies if library_first else reversed(copies):
        call(sites.here)
    assert ("net.py", 2) in user_lines(sites)
    assert not any("timm" in file for file, _ in user_lines(sites))


def test_copies_of_one_file_are_told_apart(sites: CallSites, tmp_path: Path) -> None:
    source = "def loss():\n    return here()\n"
    numbers = [written(tmp_path / folder / "model.py", source, here=sites.here)["loss"]() for folder in ("one", "two")]
    assert numbers == [1, 2]
    assert user_lines(sites) == [(f"one{os.sep}model.py", 2), (f"two{os.sep}model.py", 2)]


def test_files_elsewhere_keep_their_whole_path(tmp_path: Path) -> None:
    sites = CallSites(str(tmp_path / "project"))
    written(tmp_path / "project-of-a-friend" / "util.py", "here()\n", here=sites.here)
    assert user_lines(sites) == [(str(tmp_path / "project-of-a-friend" / "util.py"), 1)]


def test_relative_script_names_are_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sites = CallSites(str(Path.cwd()))
    (tmp_path / "train.py").write_text("here()  # relative\n", encoding="utf-8")
    define("train.py", "here()  # relative\n", here=sites.here)
    assert sites.new_rows == [(1, "train.py", 1, "<module>", "here()  # relative")]


def test_a_file_that_is_gone_has_no_source(sites: CallSites, tmp_path: Path) -> None:
    define(tmp_path / "gone.py", "here()\n", here=sites.here)
    assert sites.new_rows == [(1, "gone.py", 1, "<module>", None)]


def test_a_file_name_that_is_not_text_can_be_stored(sites: CallSites, tmp_path: Path) -> None:
    define(tmp_path / os.fsdecode(b"caf\xe9.py"), "here()\n", here=sites.here)
    assert user_lines(sites) == [("caf?.py", 1)]


def test_the_frame_of_an_outer_caller_can_be_asked_for(sites: CallSites, tmp_path: Path) -> None:
    seen: list[FrameType | None] = []
    source = "def inner():\n    look()\n\ndef outer():\n    inner()\n\nouter()\n"

    def look() -> None:
        import sys

        seen.append(sites.user_frame(sys._getframe(1)))

    written(tmp_path / "train.py", source, look=look)
    assert seen[0] is not None
    assert seen[0].f_code.co_name == "inner"
    assert sites.of_frame(seen[0].f_back) == 1
