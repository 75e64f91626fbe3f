"""Words after a script or a launcher are its own; options of Trueline come before them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import click
import pytest
from builders import build_run, trueline

from trueline.cli.reference import Reference
from trueline.cli.target import ScriptCommand
from trueline.errors import TruelineError
from trueline.rerun import Terms
from trueline.store import Run

RANKED = """\
import json, os, pathlib, sys
import torch

pathlib.Path("words" + os.environ["RANK"]).write_text(json.dumps(sys.argv[1:]))
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""
PRINTS = "import sys\nprint(sys.argv[1:])\n"
TORCHRUN = ["torchrun", "--nproc-per-node", "2", "-m", "pkg", "--json", "x"]
MSRUN = ["msrun", "--worker_num=2", "--name", "train.py", "--", "-v"]


def parsed(command: str, *words: str) -> dict[str, Any]:
    """The parameters that a command gets, those that differ from what it gets without any words."""
    found: click.Command = importlib.import_module(f"trueline.cli.{command}").command
    empty = found.make_context(command, ["x.py"]).params
    given = found.make_context(command, list(words)).params
    return {name: value for name, value in given.items() if name != "words" and value != empty[name]} | {"words": given["words"]}


@pytest.mark.parametrize("command", ["check", "diagnose"])
@pytest.mark.parametrize(
    ("given", "words", "options"),
    [
        (["train.py", "--lr", "0.1"], ["train.py", "--lr", "0.1"], {}),
        (["train.py", "--", "--lr", "0.1"], ["train.py", "--lr", "0.1"], {}),
        (["train.py", "--json", "x"], ["train.py"], {"json_target": "x"}),
        (
            ["train.py", "--json=x", "-v", "--name", "y"],
            ["train.py"],
            {"json_target": "x", "verbose": True, "name": "y"},
        ),
        (
            ["train.py", "--json", "x", "--lr", "1", "--name", "y"],
            ["train.py", "--lr", "1", "--name", "y"],
            {"json_target": "x"},
        ),
        (
            ["train.py", "--json", "x", "--", "--name", "y"],
            ["train.py", "--name", "y"],
            {"json_target": "x"},
        ),
        (
            ["train.py", "data", "--json", "x", "--", "-v"],
            ["train.py", "data", "--json", "x", "--", "-v"],
            {},
        ),
        (["train.py", "-m", "x"], ["train.py", "-m", "x"], {}),
        (["train.py", "-1", "-", "-v"], ["train.py", "-1", "-", "-v"], {}),
        (
            ["--name", "y", "-v", "--", "train.py", "--json", "x"],
            ["train.py", "--json", "x"],
            {"name": "y", "verbose": True},
        ),
        (["-m", "pkg.train", "--fast", "-v"], ["--fast", "-v"], {"module": "pkg.train"}),
        (
            ["--module=pkg.train", "-v", "--", "-v"],
            ["-v"],
            {"module": "pkg.train", "verbose": True},
        ),
        (
            ["-vmpkg", "--json", "x", "a", "-v"],
            ["a", "-v"],
            {"module": "pkg", "verbose": True, "json_target": "x"},
        ),
        (TORCHRUN, TORCHRUN, {}),
        (["--json", "x", *TORCHRUN], TORCHRUN, {"json_target": "x"}),
        (
            ["-v", "/opt/bin/torchrun", "--json", "x"],
            ["/opt/bin/torchrun", "--json", "x"],
            {"verbose": True},
        ),
        (MSRUN, MSRUN, {}),
        (
            ["-m", "torch.distributed.run", "-v", "t.py"],
            ["-v", "t.py"],
            {"module": "torch.distributed.run"},
        ),
        (["latest", "--json", "-"], ["latest"], {"json_target": "-"}),
    ],
)
def test_whose_words_are_whose(command: str, given: list[str], words: list[str], options: dict[str, Any]) -> None:
    assert parsed(command, *given) == {"words": tuple(words), **options}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--reference", "ref.py --lr 1", "train.py", "--lr", "2"], ["train.py", "--lr", "2"]),
        (["train.py", "--reference", "ref.py --lr 1", "--lr", "2"], ["train.py", "--lr", "2"]),
        (["--reference", "ref.py --lr 1", *TORCHRUN], TORCHRUN),
    ],
)
def test_with_a_reference(given: list[str], words: list[str]) -> None:
    assert parsed("diagnose", *given) == {"words": tuple(words), "reference": "ref.py --lr 1"}


@pytest.mark.parametrize("words", [["ref.py", "--lr", "1", "--json", "x"], TORCHRUN, MSRUN])
def test_the_reference_has_its_own_words_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref.py").write_text(PRINTS)
    reference = Reference(" ".join(words), Terms(), output_to_stderr=False, trusted=False)
    assert reference.script is not None
    assert reference.script.command == words


@pytest.mark.parametrize("words", [["train.py", "--lr", "1", "--name", "y", "--", "-h"], TORCHRUN, MSRUN])
def test_run_gives_all_that_follows_to_the_script(words: list[str]) -> None:
    given = importlib.import_module("trueline.cli.run").command.make_context("run", ["--name", "n", *words]).params
    assert (given["name"], [given["script"], *given["args"]]) == ("n", words)


@pytest.mark.parametrize("command", ["check", "diagnose"])
def test_an_unknown_option_before_the_script(command: str) -> None:
    with pytest.raises(
        TruelineError,
        match=rf"no option --lr\. .* after it, as in: trueline {command} train.py --lr",
    ):
        parsed(command, "--lr", "0.1", "train.py")
    with pytest.raises(click.BadOptionUsage):
        parsed(command, "--json")


def test_every_command_that_takes_a_script_sorts_its_words() -> None:
    from trueline.cli.main import COMMANDS

    commands = {name: importlib.import_module(f"trueline.cli.{name}").command for name in COMMANDS}
    taking = {name for name, command in commands.items() if any(each.name in {"script", "words"} for each in command.params)}
    assert taking == {"run", "check", "diagnose"}
    assert {name for name, command in commands.items() if isinstance(command, ScriptCommand)} == taking - {"run"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("run", []),
        ("check", ["--json", "out.json"]),
        ("diagnose", ["--no-rerun", "--json", "out.json"]),
    ],
)
def test_a_script_gets_its_words(tmp_path: Path, command: str, words: list[str]) -> None:
    (tmp_path / "train.py").write_text(PRINTS)
    own = ["--lr", "0.1", "--json", "own", "-m", "--", "x y"]
    done = trueline(command, *words, "train.py", *own, cwd=tmp_path)
    assert done.stdout.splitlines()[0] == str(own), done.stderr
    assert not (tmp_path / "own").exists()


def test_arguments_for_a_recorded_run_are_refused(tmp_path: Path) -> None:
    build_run(tmp_path / ".trueline" / "runs" / "first", [2.3])
    done = trueline("check", "first", "--json", "-", "--lr", "0.1", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "takes neither arguments nor a name. Received arguments --lr 0.1" in done.stderr


def test_a_launch_as_the_readme_prints_it(tmp_path: Path) -> None:
    """`trueline diagnose torchrun --nproc-per-node 2 train.py`, and the words of the training script after it."""
    (tmp_path / "train.py").write_text(RANKED)
    launch = ["torchrun", "--nproc-per-node", "2", "train.py", "--json", "own", "--lr", "0.1"]
    done = trueline("diagnose", "--no-rerun", "--name", "ranks", "--json", "found.json", *launch, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "found.json").read_text())["run"] == "ranks"
    for rank in ("0", "1"):
        assert json.loads((tmp_path / f"words{rank}").read_text()) == [
            "--json",
            "own",
            "--lr",
            "0.1",
        ]
    run = Run(tmp_path / ".trueline" / "runs" / "ranks")
    assert [len(run.of_rank(rank).steps) for rank in run.ranks] == [3, 3]
    run.close()
