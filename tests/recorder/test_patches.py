"""Replaced functions: seen by everybody while they are there, and gone without a trace afterwards."""

from __future__ import annotations

import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trueline.recorder.patches import Patches


class Framework:
    """What is patched: a class with every kind of attribute."""

    def method(self, value: int) -> int:
        """The original."""
        return value

    @staticmethod
    def static(value: int) -> int:
        return value

    @classmethod
    def of_class(cls, value: int) -> int:
        return value


class Derived(Framework):
    pass


def plus_one(original: Callable[..., int]) -> Callable[..., int]:
    return lambda *args: original(*args) + 1


@pytest.fixture
def module() -> Iterator[Callable[..., ModuleType]]:
    """`module(name, file, **names)`: an imported module."""
    made: list[str] = []

    def make(name: str, file: str | None, **names: Any) -> ModuleType:
        module = ModuleType(name)
        module.__dict__.update(names)
        if file is not None:
            module.__file__ = file
        sys.modules[name] = module
        made.append(name)
        return module

    yield make
    for name in made:
        sys.modules.pop(name, None)


def test_undo_restores_exactly() -> None:
    before = dict(vars(Framework))
    patches = Patches()
    patches.replace(Framework, "method", plus_one(Framework.method))
    patches.replace(Framework, "static", plus_one(Framework.static))
    assert Framework().method(1) == 2
    assert Framework.static(1) == 2
    patches.undo()
    assert dict(vars(Framework)) == before
    assert all(vars(Framework)[name] is value for name, value in before.items())


def test_an_inherited_attribute_is_not_left_behind() -> None:
    patches = Patches()
    patches.replace(Derived, "method", plus_one(Framework.method))
    assert (Derived().method(1), Framework().method(1)) == (2, 1)
    patches.undo()
    assert "method" not in vars(Derived)
    assert Derived().method(1) == 1


def test_replacements_upon_each_other_come_off_in_turn() -> None:
    original = vars(Framework)["method"]
    patches = Patches()
    patches.replace(Framework, "method", plus_one(Framework.method))
    patches.replace(Framework, "method", plus_one(Framework.method))
    assert Framework().method(1) == 3
    patches.undo()
    assert vars(Framework)["method"] is original


def test_dressed_up_as_the_original() -> None:
    patches = Patches()
    signature = inspect.signature(Framework.method)
    patches.replace(Framework, "method", plus_one(Framework.method))
    assert Framework.method.__name__ == "method"
    assert Framework.method.__doc__ == "The original."
    assert inspect.signature(Framework.method) == signature
    patches.undo()


def test_what_somebody_replaced_later_is_left_to_them() -> None:
    original = vars(Framework)["method"]
    patches = Patches()
    patches.replace(Framework, "method", plus_one(Framework.method))
    theirs = plus_one(Framework.method)
    Framework.method = theirs  # type: ignore[method-assign]
    patches.undo()
    assert vars(Framework)["method"] is theirs
    Framework.method = original  # type: ignore[method-assign]


def test_undo_twice_and_again() -> None:
    original = vars(Framework)["method"]
    patches = Patches()
    for _ in range(2):
        patches.replace(Framework, "method", plus_one(Framework.method))
        assert Framework().method(1) == 2
        patches.undo()
        patches.undo()
        assert vars(Framework)["method"] is original


def loss(value: int) -> int:
    return value


# Out of reach of rebinding, which finds the name above as it finds those of every module that is not a library's.
ORIGINAL = {"loss": loss}


@pytest.fixture
def patched(module: Callable[..., ModuleType]) -> Iterator[tuple[Patches, ModuleType]]:
    framework = module("some_framework", None, loss=loss)
    patches = Patches()
    patches.replace(framework, "loss", plus_one(ORIGINAL["loss"]))
    yield patches, framework
    patches.undo()


def test_early_imports_are_reached_and_put_back(
    patched: tuple[Patches, ModuleType], module: Callable[..., ModuleType], tmp_path: Path
) -> None:
    user = module("some_users_module", str(tmp_path / "net.py"), loss=loss, criterion=loss, other=len)
    patches, framework = patched
    patches.rebind_early_imports()
    assert user.loss is user.criterion is framework.loss
    assert user.loss(1) == 2
    patches.undo()
    assert user.loss is user.criterion is framework.loss is ORIGINAL["loss"]
    assert user.other is len


def test_a_name_that_was_bound_anew_is_left_alone(
    patched: tuple[Patches, ModuleType], module: Callable[..., ModuleType], tmp_path: Path
) -> None:
    user = module("some_users_module", str(tmp_path / "net.py"), loss=loss, gone=loss)
    patches, _ = patched
    patches.rebind_early_imports()
    user.loss = max
    del user.gone
    patches.undo()
    assert user.loss is max
    assert not hasattr(user, "gone")


def test_libraries_keep_what_they_imported(patched: tuple[Patches, ModuleType], module: Callable[..., ModuleType]) -> None:
    library = module("some_library", str(Path(sysconfig.get_paths()["purelib"]) / "some_library.py"), loss=loss)
    built_in = module("some_builtin", None, loss=loss)
    patches, _ = patched
    patches.rebind_early_imports()
    assert library.loss is built_in.loss is ORIGINAL["loss"]


def test_the_script_itself_is_reached(patched: tuple[Patches, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    script = ModuleType("__main__")
    script.__dict__["loss"] = loss
    monkeypatch.setitem(sys.modules, "__main__", script)
    patches, framework = patched
    patches.rebind_early_imports()
    assert script.__dict__["loss"] is framework.loss


class Lazy(ModuleType):
    """A module that imports on demand, and cannot: as packages with optional parts are."""

    def __getattr__(self, name: str) -> Any:
        raise ImportError(name)


def test_strange_modules_are_no_obstacle(
    patched: tuple[Patches, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = ModuleType("some_users_module")
    user.__dict__.update(loss=loss, __file__=str(tmp_path / "net.py"))
    strangers: dict[str, Any] = {"stranger1": Lazy("stranger1"), "stranger2": None, "stranger3": object(), "stranger4": user}
    strange_file = ModuleType("stranger5")
    strange_file.__dict__["__file__"] = tmp_path / "net.py"
    for name, stranger in {**strangers, "stranger5": strange_file}.items():
        monkeypatch.setitem(sys.modules, name, stranger)
    patches, framework = patched
    patches.rebind_early_imports()
    assert user.loss is framework.loss
