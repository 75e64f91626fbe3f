"""Imports go one way only, and only adapters know a framework."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGE, imports_of, module_of, source_files

# From the bottom to the top: a layer imports from itself and from the ones before it (docs/decisions/001).
LAYERS = [
    "errors", "output", "limits", "reading", "model", "tensorfiles", "store", "recorder", "adapters", "launch", "views", "checks",
    "datasets", "knowledge", "compare", "rerun", "diagnose", "report", "web", "perf", "scale", "integrations", "testing", "cli",
]  # fmt: skip
FRAMEWORKS = {"torch", "mindspore", "lightning", "pytorch_lightning", "transformers"}
MAY_KNOW_A_FRAMEWORK = {"adapters", "integrations", "testing"}


def layer_of(module: str) -> str:
    """The folder (or top-level module) directly under `trueline`; '' for the package itself and `__main__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else ""


def own_layers() -> set[str]:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    return folders | {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}


def is_of_trueline(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == "trueline"


def test_every_folder_has_its_place_in_the_order() -> None:
    assert own_layers() <= set(LAYERS), "a new folder needs a place in LAYERS"


@pytest.mark.parametrize("path", source_files(), ids=module_of)
def test_imports_go_down_only(path: Path) -> None:
    layer = layer_of(module_of(path))
    if not layer:
        return
    wrong = []
    for line, imported in imports_of(path):
        if not is_of_trueline(imported):
            continue
        target = layer_of(imported)
        if target not in own_layers():
            # A name of the package itself: `__version__` may be read anywhere, the rest of it stands above all layers.
            if not imported.startswith("trueline.__"):
                wrong.append(f"{path}:{line} imports {imported}")
        elif LAYERS.index(target) > LAYERS.index(layer):
            wrong.append(f"{path}:{line}: {layer} imports {imported} of {target}, which is above it")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", source_files(), ids=module_of)
def test_only_adapters_import_a_framework(path: Path) -> None:
    if layer_of(module_of(path)) in MAY_KNOW_A_FRAMEWORK:
        return
    wrong = [f"{path}:{line} imports {name}" for line, name in imports_of(path) if name.split(".")[0] in FRAMEWORKS]
    assert not wrong, "\n".join(wrong)


def _check_of(module: str) -> str | None:
    """The folder of the check of which this is a file."""
    match module.split(".")[:4]:
        case ["trueline", "checks", check, name] if (PACKAGE / "checks" / check / f"{name}.py").is_file():
            return check
    return None


@pytest.mark.parametrize("path", source_files(), ids=module_of)
def test_the_folder_of_a_check_is_its_own(path: Path) -> None:
    """What several ask is a view (docs/decisions/022)."""
    own = module_of(path).split(".")[2:3]
    wrong = [
        f"{path}:{line} imports {imported}"
        for line, imported in imports_of(path)
        if (check := _check_of(imported)) is not None and [check] != own
    ]
    assert not wrong, "\n".join(wrong)


def test_only_items_stand_in_the_folder_of_checks() -> None:
    names = {path.stem for path in (PACKAGE / "checks").iterdir() if path.name != "__pycache__"}
    items = {name for name in names if re.fullmatch(r"[a-z]+_\d\d_[a-z0-9_]+", name)}
    assert names - items == {"__init__", "base", "parts", "runner"}


def test_relative_and_nested_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above are worth as much as what `imports_of` sees."""
    package = tmp_path / "trueline"
    (package / "store").mkdir(parents=True)
    (package / "store" / "__init__.py").write_text("from . import reader\n")
    (package / "store" / "reader.py").write_text("def f():\n    import torch.nn\n    from ..cli import main\n")
    (package / "store" / "runs.py").write_text("import trueline\n\nprint(trueline.record)\n")
    monkeypatch.setattr("tests.architecture.sources.PACKAGE", package)
    assert imports_of(package / "store" / "__init__.py") == [(1, "trueline.store.reader")]
    assert imports_of(package / "store" / "reader.py") == [(2, "torch.nn"), (3, "trueline.cli.main")]
    assert imports_of(package / "store" / "runs.py") == [(3, "trueline.record")]
