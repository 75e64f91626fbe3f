"""Running a script or a module as `python` would: same argv, sys.path, `__main__`, exit code and traceback."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

import msgspec

from trueline.errors import ScriptNotFound

_OWN_FOLDER = str(Path(__file__).resolve().parent.parent) + os.sep


class Program(msgspec.Struct, frozen=True):
    """Code that is ready to run as `__main__`."""

    name: str
    code: CodeType
    argv: list[str]
    path_entry: str
    file: str
    spec: importlib.machinery.ModuleSpec | None = None


def load_script(script: str, args: list[str]) -> Program:
    """Read and compile a script file (or a folder or zip with a `__main__.py` is refused: run it with -m)."""
    path = Path(script)
    if not path.exists():
        raise ScriptNotFound(f"There is no script {script!r} in {Path.cwd()}. Check the path, or run a module with: -m MODULE")
    if path.is_dir():
        raise ScriptNotFound(f"{script!r} is a directory. Expected a Python script. Run a package with: -m PACKAGE")
    # Path would tidy up what python leaves as given; and the folder in which python was started may be gone.
    file = script if path.is_absolute() else os.path.join(os.getcwd(), script)  # noqa: PTH109, PTH118
    code = compile(path.read_bytes(), file, "exec", dont_inherit=True)
    folder = os.path.dirname(os.path.realpath(script))  # noqa: PTH120 - as python itself computes sys.path[0]
    return Program(path.stem, code, [script, *args], folder, file)


def load_module(name: str, args: list[str]) -> Program:
    """Find and compile a module or the `__main__` of a package, as `python -m` does."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    finally:
        sys.path.pop(0)
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        raise ScriptNotFound(f"There is no module {name!r} to run from {Path.cwd()}. Check the name, or give a script file.")
    code = spec.loader.get_code(spec.name)
    file = spec.origin or name
    return Program(name.rpartition(".")[2], code, [file, *args], str(Path.cwd()), file, spec)


def run_program(program: Program) -> None:
    """Run it in a fresh `__main__`. Whatever it raises is raised here; the traceback shows none of our frames."""
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=program.file,
        __spec__=program.spec,
        __annotations__={},
        __cached__=program.spec.cached if program.spec is not None else None,
        __builtins__=builtins,
        __package__=program.spec.parent if program.spec is not None else None,
        __loader__=program.spec.loader
        if program.spec is not None
        else importlib.machinery.SourceFileLoader("__main__", program.file),
    )
    sys.argv[:] = program.argv
    sys.path[0] = program.path_entry
    # The module that is `__main__` now stays alive: its globals would be cleared under our feet.
    main.__dict__["__trueline_keeps__"] = sys.modules["__main__"]
    sys.modules["__main__"] = main
    _hide_own_frames()
    del main.__dict__["__trueline_keeps__"]
    exec(program.code, main.__dict__)  # noqa: S102 - running the user's script is the job


def _hide_own_frames() -> None:
    show = sys.excepthook

    def excepthook(kind: type[BaseException], problem: BaseException, traceback: TracebackType | None) -> None:
        seen: set[int] = set()
        links: list[BaseException | None] = [problem]
        while links:
            link = links.pop()
            if link is None or id(link) in seen:
                continue
            seen.add(id(link))
            link.__traceback__ = _without_own_frames(link.__traceback__)
            links += [link.__cause__, link.__context__]
        show(kind, problem, problem.__traceback__)

    sys.excepthook = excepthook


def _without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback of the script alone: without what started it, and without entries of our own files further down."""
    entries: list[TracebackType] = []
    while traceback is not None:
        if traceback.tb_frame.f_code is run_program.__code__:
            entries = []
        elif not traceback.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
            entries.append(traceback)
        traceback = traceback.tb_next
    following = None
    for entry in reversed(entries):
        following = TracebackType(following, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return following
