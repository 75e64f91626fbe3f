"""`trueline convert`: weights of one framework for the other."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trueline.cli.verdict import NOTHING_FOUND, PROBLEM_FOUND
from trueline.errors import TruelineError
from trueline.report.console import say
from trueline.report.words import many

if TYPE_CHECKING:
    from trueline.compare.files.translation import Translated, Translation
    from trueline.tensorfiles import TensorSource

_ENDINGS = {"pytorch": (".pth", ".pt", ".bin"), "mindspore": (".ckpt",), "safetensors": (".safetensors",)}


@click.command("convert")
@click.argument("source_path", metavar="IN")
@click.argument("target_path", metavar="OUT")
@click.option("--to", "target", type=click.Choice(list(_ENDINGS)), required=True, help="What OUT is written for.")
@click.option("--map", "map_file", metavar="FILE", help="Names of IN and what they are called in OUT: a JSON object.")
@click.option("--like", metavar="TARGET", help="A checkpoint of the target model: OUT gets its names and shapes.")
@click.option("--force", is_flag=True, help="Write over OUT if it exists.")
@click.pass_context
def command(
    ctx: click.Context, source_path: str, target_path: str, target: str, map_file: str | None, like: str | None, force: bool
) -> None:
    """Convert weights between PyTorch (.pth), MindSpore (.ckpt) and safetensors.

    Names are translated: gamma and weight, moving_mean and running_mean, embedding_table and weight. What is written is read
    again and compared with IN, bit by bit.

    Exit code: 0, or 1 if the target model (--like) lacks some of the weights; 2 wrong usage or not converted.
    """
    from trueline.compare import map_file as maps
    from trueline.compare.files.translation import translate, translate_like
    from trueline.tensorfiles import open_tensors

    out = Path(target_path)
    _check_target(out, target, force=force)
    fixed = None if map_file is None else maps.read_map(Path(map_file))
    source = open_tensors(source_path)
    if source.problems:
        raise TruelineError(f"{source_path} was not converted, as it cannot be read in whole: {source.problems[0]}")
    if like is None:
        origin, words = _framework_of(source), None if target == "safetensors" else target
        translation = translate(source.model_entries, origin, words, fixed)
    else:
        translation = translate_like(source.model_entries, open_tensors(like).model_entries, fixed)
    _write(source, translation, out, target)
    _tell(source, translation, out)
    ctx.exit(PROBLEM_FOUND if translation.missing else NOTHING_FOUND)


def _check_target(out: Path, target: str, *, force: bool) -> None:
    if out.suffix not in _ENDINGS[target]:
        raise TruelineError(f"OUT for {target} ends in {' or '.join(_ENDINGS[target])}. Received {str(out)!r}.")
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise TruelineError(f"OUT is a file in an existing folder. Received {str(out)!r}.")
    if out.exists() and not force:
        raise TruelineError(f"{out} exists already. Give another name, or write over it with: --force")


def _framework_of(source: TensorSource) -> str | None:
    """Arrays and safetensors need not tell where they come from; their names do."""
    if source.framework is not None:
        return source.framework
    roles = {entry.name.rpartition(".")[2] for entry in source.model_entries}
    return "mindspore" if roles & {"gamma", "moving_mean", "embedding_table"} else "pytorch"


def _write(source: TensorSource, translation: Translation, out: Path, target: str) -> None:
    """Under another name first: what is not what it should be never stands in the place of something."""
    weights: dict[str, tuple[str, Any]] = {}
    for each in translation.tensors:
        if each.name in weights:
            raise TruelineError(f"{each.source} and another tensor would both be called {each.name}. Name them with --map FILE.")
        weights[each.name] = _weight(source, each)
    partial = out.with_name(f"{out.stem}.partial{out.suffix}")
    try:
        _writer(target, source)(partial, weights)
        _check_written(partial, weights)
        partial.replace(out)
    except OSError as problem:
        raise TruelineError(f"{out} cannot be written ({problem.strerror}). Choose another folder.") from problem
    finally:
        partial.unlink(missing_ok=True)


def _weight(source: TensorSource, each: Translated) -> tuple[str, Any]:
    stored = source.stored(source.full_name(each.source))
    raw = stored.whole_raw()
    return stored.format.name, (raw.T if each.transposed else raw).reshape(each.shape)


def _writer(target: str, source: TensorSource) -> Any:
    if target == "safetensors":
        from trueline.tensorfiles.safetensors_file import write_safetensors

        return lambda path, weights: write_safetensors(path, weights, _framework_of(source))
    try:
        return importlib.import_module(f"trueline.adapters.{target}.weights").write_weights
    except ModuleNotFoundError as problem:
        raise TruelineError(
            f"{problem.name} is not installed, and it is what writes the file. Install it with: pip install 'trueline[{target}]'"
        ) from problem


def _check_written(path: Path, weights: dict[str, tuple[str, Any]]) -> None:
    from trueline.tensorfiles import open_tensors

    written = open_tensors(path)
    names = {entry.name: entry.dtype for entry in written.entries}
    for name, (dtype, raw) in weights.items():
        if names.get(name) != dtype or written.stored(name).whole_raw().tobytes() != raw.tobytes():
            raise TruelineError(f"{name} did not come back from the written file as it was. Nothing was kept.")


def _tell(source: TensorSource, translation: Translation, out: Path) -> None:
    renamed = sum(each.source != each.name for each in translation.tensors)
    count = many(len(translation.tensors), "tensor")
    say(f"{source.path} → {out}: {count}, {renamed} renamed, read back and equal bit by bit.")
    beside = len(source.entries) - len(source.model_entries)
    if beside:
        say(f" Left out: {many(beside, 'tensor')} beside the model ({source.model!r}).")
    for title, names in (
        ("Left out, as the target has no such thing", translation.left_out),
        ("Missing in IN, so the target keeps its own", translation.missing),
    ):
        if names:
            say(f" {title}: {', '.join(names)}")
    for note in translation.notes:
        say(f" {note}")
