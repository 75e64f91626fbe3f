"""Being told of an import, without being noticed by anybody else."""

from __future__ import annotations

import importlib
import importlib.resources
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trueline.launch.imports import ImportHook

NAME = "watched_package"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real package on sys.path, with a submodule and a data file."""
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "__init__.py").write_text("value = 1\n")
    (folder / "part.py").write_text("value = 2\n")
    (folder / "data.txt").write_text("content")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in (NAME, f"{NAME}.part"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return folder


@pytest.fixture
def announced() -> list[str]:
    return []


@pytest.fixture
def hook(announced: list[str]) -> Iterator[ImportHook]:
    hook = ImportHook([NAME], announced.append)
    yield hook
    hook.remove()
    for name in (NAME, f"{NAME}.part"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("package")
def test_an_import_is_announced_once_it_is_complete(hook: ImportHook, announced: list[str]) -> None:
    hook.install()
    assert announced == []
    module = importlib.import_module(NAME)
    assert announced == [NAME]
    assert module.value == 1
    importlib.import_module(f"{NAME}.part")
    importlib.import_module(NAME)
    assert announced == [NAME]


@pytest.mark.usefixtures("package")
def test_what_is_imported_already_is_announced_at_once(hook: ImportHook, announced: list[str]) -> None:
    importlib.import_module(NAME)
    hook.install()
    assert announced == [NAME]


@pytest.mark.usefixtures("package")
def test_asking_whether_it_is_installed_does_not_lose_the_import(hook: ImportHook, announced: list[str]) -> None:
    """`importlib.util.find_spec("torch")` is how transformers and many scripts look whether torch is there."""
    hook.install()
    assert importlib.util.find_spec(NAME) is not None
    assert announced == []
    importlib.import_module(NAME)
    assert announced == [NAME]


def test_an_import_that_fails_first_and_works_later_is_announced(hook: ImportHook, announced: list[str], package: Path) -> None:
    source = (package / "__init__.py").read_text()
    (package / "__init__.py").write_text("raise ImportError('a library is missing')\n")
    hook.install()
    with pytest.raises(ImportError, match="a library is missing"):
        importlib.import_module(NAME)
    assert announced == []
    (package / "__init__.py").write_text(source + "# now it works, and the file has another size\n")
    importlib.invalidate_caches()
    importlib.import_module(NAME)
    assert announced == [NAME]


@pytest.mark.usefixtures("package")
def test_a_package_that_is_not_there_stays_missing(announced: list[str]) -> None:
    absent = ImportHook(["no_such_framework"], announced.append)
    absent.install()
    try:
        assert importlib.util.find_spec("no_such_framework") is None
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_framework")
    finally:
        absent.remove()
    assert announced == []


def test_other_packages_are_left_to_other_finders(hook: ImportHook) -> None:
    hook.install()
    assert hook.find_spec("json", None) is None
    assert hook.find_spec(f"{NAME}.part", None) is None


def test_the_package_keeps_the_loader_that_python_gave_it(hook: ImportHook, package: Path) -> None:
    hook.install()
    module = importlib.import_module(NAME)
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    assert module.__file__ == str(package / "__init__.py")
    assert importlib.resources.files(NAME).joinpath("data.txt").read_text() == "content"
    assert importlib.reload(module).value == 1


def test_removing_leaves_no_trace(hook: ImportHook) -> None:
    before = list(sys.meta_path)
    hook.install()
    assert sys.meta_path[0] is hook
    hook.remove()
    hook.remove()
    assert sys.meta_path == before
