"""What appears on a terminal goes through one of two files, which show names of others as what they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGE, module_of, source_files

MAY_WRITE = {
    # Commands.
    "trueline.report.console",
    # Warnings while a script runs.
    "trueline.output",
    # Standard output is a pipe to the process that started it.
    "trueline.rerun.sandbox.inside",
}
_STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
_CLICK = {"echo", "secho", "echo_via_pager", "style"}


def outputs_of(path: Path) -> list[str]:
    """Every place of a file that could write to the terminal by itself."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                found.append(f"{path}:{node.lineno} prints")
            case ast.Call(func=ast.Name(id=name)) if name.endswith("Console"):
                found.append(f"{path}:{node.lineno} makes a console of its own")
            case ast.Attribute(
                value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr="write" | "writelines" | "buffer" | "flush"
            ) if stream in _STREAMS:
                found.append(f"{path}:{node.lineno} writes to sys.{stream}")
            case ast.keyword(arg="file", value=ast.Attribute(value=ast.Name(id="sys"))):
                found.append(f"{path}:{node.value.lineno} hands out a stream")
            case ast.Attribute(value=ast.Name(id="click"), attr=attribute) if attribute in _CLICK:
                found.append(f"{path}:{node.lineno} uses click.{attribute}")
            case ast.ImportFrom(module="rich" | "click", names=names) if any(each.name in {"print", *_CLICK} for each in names):
                found.append(f"{path}:{node.lineno} imports a way to print")
            case ast.Call(func=ast.Attribute(attr="from_markup")):
                found.append(f"{path}:{node.lineno} reads markup")
    return found


@pytest.mark.parametrize("path", source_files(), ids=module_of)
def test_only_the_console_writes(path: Path) -> None:
    if module_of(path) not in MAY_WRITE:
        assert not outputs_of(path), "use `say` or `output_console` of report/console.py, or `warn` of output.py"


def test_ways_to_write_are_seen(tmp_path: Path) -> None:
    """The test above is worth as much as what `outputs_of` sees."""
    lines = [
        "print('x')", "sys.stdout.write('x')", "sys.stderr.buffer.write(b'x')", "click.echo('x')", "Console().print('x')",
        "from rich import print", "problem.show(file=sys.stderr)", "Text.from_markup('x')", "sys.__stderr__.flush()",
    ]  # fmt: skip
    for line in lines:
        (tmp_path / "one.py").write_text(f"{line}\n")
        assert outputs_of(tmp_path / "one.py"), line
    (tmp_path / "one.py").write_text("warn('x')\nconsole.print('x')\nsys.stdin.isatty()\n")
    assert not outputs_of(tmp_path / "one.py")
    assert {PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py").is_file() for name in MAY_WRITE} == {True}
