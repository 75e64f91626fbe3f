"""Wrong input gets a clear message and the right exit code, and never a traceback of ours. All with the real command."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from builders import build_run, trueline

RUNS = Path(".trueline") / "runs"
NEVER_TRAINS = "import torch\nnet = torch.nn.Linear(2, 1)\nprint(net(torch.zeros(1, 2)).shape)\n"
TRAINS = """\
import sys
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(torch.randn(16, 4)), torch.randint(0, 2, (16,)))
    loss.backward()
    optimizer.step()
print("trained")
"""


def _refused(done: CompletedProcess[str], *words: str) -> None:
    """Exit code 2, one message of ours that holds the words, no traceback."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    messages = [line for line in done.stderr.splitlines() if line.startswith("trueline: ")]
    assert len(messages) == 1, done.stderr
    for word in words:
        assert word in messages[0]


@pytest.mark.parametrize("command", ["diagnose", "check"])
def test_script_that_does_not_exist(tmp_path: Path, command: str) -> None:
    _refused(trueline(command, "train.py", cwd=tmp_path), "no script 'train.py'", str(tmp_path))


@pytest.mark.parametrize("command", ["diagnose", "check"])
def test_directory_instead_of_a_script(tmp_path: Path, command: str) -> None:
    (tmp_path / "project").mkdir()
    _refused(trueline(command, "project", cwd=tmp_path), "'project' is a directory", "-m PACKAGE")


@pytest.mark.parametrize("source", ["import torch\nfor step in range(3:\n    pass\n", "x = '\xe9'\n# coding: nonsense\n\x00"])
def test_script_that_does_not_compile_is_not_started(tmp_path: Path, source: str) -> None:
    (tmp_path / "train.py").write_text(source)
    _refused(trueline("diagnose", "train.py", cwd=tmp_path), "train.py")
    assert not (tmp_path / RUNS).exists()


def test_syntax_error_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nfor step in range(3:\n    pass\n")
    _refused(trueline("diagnose", "train.py", cwd=tmp_path), "line 2", "SyntaxError", "for step in range(3:")


def test_two_ways_to_look_into_graphs(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    done = trueline("run", "--pynative", "--graph-tensors", "train.py", cwd=tmp_path)
    _refused(done, "Expected --pynative or --graph-tensors", "Received both")
    assert "hello" not in done.stdout


def test_module_that_does_not_exist(tmp_path: Path) -> None:
    _refused(trueline("diagnose", "-m", "package.train", cwd=tmp_path), "no module 'package.train'")


def test_package_that_cannot_be_started(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    _refused(trueline("diagnose", "-m", "package", cwd=tmp_path), "without __main__.py")


def test_script_that_imports_no_framework(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    done = trueline("diagnose", "train.py", "--json", "out.json", cwd=tmp_path)
    _refused(done, "imported neither PyTorch nor MindSpore")
    assert "hello" in done.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["verdict"]["status"] == "inconclusive"
    assert {item["conclusion"] for item in document["checklist"]} == {"not_checked"}


def test_script_that_fails_before_it_imports_a_framework(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("raise SystemExit(3)\n")
    _refused(trueline("diagnose", "train.py", cwd=tmp_path), "exit code 3")


def test_script_that_never_trains(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NEVER_TRAINS)
    done = trueline("diagnose", "train.py", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "never trained" in done.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["verdict"]["status"] == "inconclusive"
    assert {item["conclusion"] for item in document["checklist"]} <= {"not_checked", "not_applicable"}


def test_exit_of_the_script_before_it_trains(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys, torch\nsys.exit(3)\n")
    done = trueline("diagnose", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "exit code 3" in done.stdout
    assert "Traceback" not in done.stderr


def test_exit_of_the_script_after_it_trained(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS + "sys.exit(3)\n")
    done = trueline("diagnose", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exit code 3" in done.stdout
    assert "6 steps" in done.stdout


def test_exception_of_the_script_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS + "raise ValueError('no more data')\n")
    done = trueline("diagnose", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("Traceback") == 1
    assert 'File "train.py"' in done.stderr or f'File "{tmp_path / "train.py"}"' in done.stderr
    assert "trueline" not in done.stderr
    assert "ValueError: no more data" in done.stdout


@pytest.mark.parametrize("command", ["diagnose", "check", "run"])
def test_name_of_an_existing_run(tmp_path: Path, command: str) -> None:
    build_run(tmp_path / RUNS / "first", [2.3])
    (tmp_path / "train.py").write_text("print('hello')\n")
    done = trueline(command, "--name", "first", "train.py", cwd=tmp_path)
    _refused(done, "'first' exists already", "trueline runs delete first")
    assert "hello" not in done.stdout


@pytest.mark.parametrize("name", ["a/b", "..", ""])
def test_name_that_is_no_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    _refused(trueline("diagnose", "--name", name, "train.py", cwd=tmp_path), repr(name))


@pytest.mark.parametrize("command", ["check", "show"])
@pytest.mark.parametrize("content", ["", '{"format": 2', "[]", '{"format": 2, "name": 3}', "\x00\x01"])
def test_corrupt_run_description(tmp_path: Path, command: str, content: str) -> None:
    directory = build_run(tmp_path / RUNS / "first", [2.3])
    (directory / "run.json").write_text(content)
    _refused(trueline(command, "first", cwd=tmp_path), "run.json")


@pytest.mark.parametrize("command", ["check", "show", "diagnose"])
def test_corrupt_recording(tmp_path: Path, command: str) -> None:
    directory = build_run(tmp_path / RUNS / "first", [2.3])
    (directory / "rank0.sqlite").write_bytes(b"this is no database " * 500)
    _refused(trueline(command, "first", cwd=tmp_path), "rank0.sqlite", "Record the run again")


def test_empty_recording(tmp_path: Path) -> None:
    directory = build_run(tmp_path / RUNS / "first", [2.3])
    (directory / "rank0.sqlite").write_bytes(b"")
    _refused(trueline("check", "first", cwd=tmp_path), "rank0.sqlite")


@pytest.mark.parametrize("command", ["check", "show", "diagnose"])
def test_run_of_a_newer_format(tmp_path: Path, command: str) -> None:
    directory = build_run(tmp_path / RUNS / "first", [2.3])
    (directory / "run.json").write_text('{"format": 999, "new": true}')
    _refused(trueline(command, str(directory), cwd=tmp_path), "format 999", "Upgrade Trueline")


@pytest.mark.parametrize("command", ["check", "show", "diagnose"])
def test_latest_without_runs(tmp_path: Path, command: str) -> None:
    _refused(trueline(command, "latest", cwd=tmp_path), "no runs")


def test_unknown_run(tmp_path: Path) -> None:
    _refused(trueline("show", "nothing", cwd=tmp_path), "'nothing'", "trueline runs")


def test_option_of_the_script_before_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    _refused(trueline("diagnose", "--lr", "0.1", "train.py", cwd=tmp_path), "--lr", "go after it")


def test_arguments_for_a_run(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "first", [2.3])
    _refused(trueline("check", "first", "--", "--lr", "0.1", cwd=tmp_path), "--lr 0.1")


def test_nothing_given(tmp_path: Path) -> None:
    _refused(trueline("diagnose", cwd=tmp_path), "Give a script")


def test_reference_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    _refused(trueline("diagnose", "train.py", "--reference", "other.py", cwd=tmp_path), "other.py")


def test_report_that_cannot_be_written_is_refused_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    done = trueline("diagnose", "train.py", "--json", "nowhere/out.json", cwd=tmp_path)
    _refused(done, "nowhere/out.json")
    assert "hello" not in done.stdout


def test_run_treats_a_syntax_error_as_python_does(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("for step in range(3:\n    pass\n")
    done = trueline("run", "train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_of_a_missing_script(tmp_path: Path) -> None:
    done = trueline("run", "train.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "train.py" in done.stderr
    assert "Traceback" not in done.stderr
