"""Lines of a script that draw from a random stream which nothing seeds: found in its text."""

from __future__ import annotations

import ast
import re

import msgspec

from trueline.model import Location
from trueline.store import Run
from trueline.views.source import text_of

_NOT_DRAWING = {
    "seed",
    "default_rng",
    "Generator",
    "RandomState",
    "Random",
    "SystemRandom",
    "getstate",
    "setstate",
    "get_state",
    "set_state",
}
_GENERATORS = {"default_rng", "RandomState", "Random"}
_SKLEARN = re.compile(r"^(train_test_split|make_\w+|resample)$")


class Draw(msgspec.Struct, frozen=True):
    """A line that draws. `library` is the one whose global stream it uses; None for a generator without a seed of its own."""

    library: str | None
    location: Location


def unseeded_draws(run: Run, seeded: set[str]) -> list[Draw]:
    """The lines that draw from streams of libraries outside of `seeded`, or from generators without a seed, in their order."""
    found = []
    for name in _files_of(run):
        text = text_of(run, name)
        if text is None:
            continue
        for line, library in _draws_in(text.tree):
            if library is None or library not in seeded:
                found.append(Draw(library, Location(name, line, None, None, text.line(line))))
    return found


def _files_of(run: Run) -> list[str]:
    """The files of the user's that took part in the run, the script first."""
    places = [event.location for event in run.events] + [module.built for module in run.modules.values()]
    places += [loader.built for loader in run.loaders.values()]
    names = {place.file: None for place in places if place is not None}
    script = run.info.script
    return list({**({script: None} if script and script.endswith(".py") else {}), **names})


def _draws_in(tree: ast.Module) -> list[tuple[int, str | None]]:
    aliases = _aliases(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            library = _library_of(node, aliases)
            if library != "":
                found.append((node.lineno, library))
    return sorted(set(found), key=lambda pair: pair[0])


def _aliases(tree: ast.Module) -> dict[str, str]:
    """What the names that a file imports stand for: `np` is `numpy`, `shuffle` may be `random.shuffle`."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return known


def _library_of(call: ast.Call, aliases: dict[str, str]) -> str | None:
    """The library whose stream a call draws from; None for a generator made without a seed, '' for a call that draws nothing."""
    parts: list[str] = []
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return ""
    whole = [*aliases[node.id].split("."), *reversed(parts)]
    name = whole[-1]
    if whole[0] == "sklearn" and _SKLEARN.match(name) and not any(word.arg in ("random_state", None) for word in call.keywords):
        return "numpy"
    is_numpy, is_random = whole[:2] == ["numpy", "random"], whole[0] == "random" and len(whole) == 2
    if not is_numpy and not is_random:
        return ""
    if name in _GENERATORS:
        first = call.args[0] if call.args else next((word.value for word in call.keywords), None)
        without = first is None or (isinstance(first, ast.Constant) and first.value is None)
        return None if without else ""
    if name in _NOT_DRAWING:
        return ""
    return "numpy" if is_numpy else "random"
