"""What the user asks to record: a script or a module with its arguments, looked at before anything is started."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

import msgspec

from trueline.errors import ScriptNotFound, ScriptUnreadable, TruelineError
from trueline.launch.ranks import LAUNCHERS, launched_stem, launcher_of

_NOT_SOURCE = {".pyc", ".pyz", ".zip"}


class Script(msgspec.Struct, frozen=True):
    """A script (or `-m` module) and its arguments, as `trueline run` takes them."""

    path: str | None
    module: str | None
    arguments: tuple[str, ...]

    @property
    def stem(self) -> str:
        """What runs of it are named after."""
        launcher = launcher_of(self.path or str(self.module), as_module=self.path is None)
        if launcher is not None:
            return launched_stem(launcher, list(self.arguments))
        return Path(self.path).stem if self.path is not None else str(self.module).rpartition(".")[2]

    @property
    def command(self) -> list[str]:
        target = [self.path] if self.path is not None else ["-m", str(self.module)]
        return [*target, *self.arguments]

    def check(self) -> None:
        """Raise a TruelineError when it is not there or does not compile, instead of starting what cannot work."""
        if self.path in LAUNCHERS and not Path(self.path).exists():
            _check_module(LAUNCHERS[self.path])
        elif self.path is not None:
            _check_file(self.path)
        else:
            _check_module(str(self.module))


def _check_file(path: str) -> None:
    if not os.path.lexists(path):
        raise ScriptNotFound(
            f"There is no script {path!r} in {Path.cwd()}, and no run of that name. "
            "Give the path of a Python script, or a run that `trueline runs` lists."
        )
    if Path(path).is_dir():
        raise ScriptNotFound(
            f"{path!r} is a directory, neither a script nor a Trueline run. "
            "Give the script's file; start a package with: trueline diagnose -m PACKAGE"
        )
    _check_source(Path(path))


def _check_source(path: Path) -> None:
    try:
        source = path.read_bytes()
    except OSError as problem:
        raise ScriptUnreadable(f"{path} cannot be read ({problem.strerror}). Check the path and its permissions.") from problem
    if path.suffix in _NOT_SOURCE:
        return
    try:
        with warnings.catch_warnings():
            # Python shows the script's own warnings again when it runs.
            warnings.simplefilter("ignore")
            compile(source, str(path), "exec", dont_inherit=True)
    except SyntaxError as problem:
        line = f" ({problem.text.strip()})" if problem.text and problem.text.strip() else ""
        place = f", line {problem.lineno}" if problem.lineno else ""
        raise ScriptUnreadable(
            f"{path}{place}: {type(problem).__name__}: {problem.msg}{line}. "
            f"Correct the script; python {path} shows the same error."
        ) from problem
    except ValueError as problem:
        raise ScriptUnreadable(f"{path} is not Python source ({problem}). Give a Python script.") from problem


def _check_module(name: str) -> None:
    """Find the module as `python -m` would, without importing its packages."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise TruelineError(f"-m takes a module name such as package.train. Received {name!r}.")
    spec = _find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = PathFinder.find_spec(f"{name}.__main__", list(spec.submodule_search_locations))
        if spec is None:
            raise ScriptNotFound(f"{name!r} is a package without __main__.py. Give one of its modules, such as: -m {name}.train")
    if spec is None:
        raise ScriptNotFound(f"There is no module {name!r} to be found from {Path.cwd()}. Start it where python -m {name} works.")
    if spec.origin is not None and spec.origin.endswith(".py"):
        _check_source(Path(spec.origin))


def _find_spec(name: str) -> ModuleSpec | None:
    locations: list[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        if locations is None:
            return None
        spec = PathFinder.find_spec(".".join(parts[:depth]), locations)
        if spec is None:
            return None
        locations = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    return spec
