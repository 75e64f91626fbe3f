"""`trueline run SCRIPT` behaves as `python SCRIPT` in everything that a script or its user can see."""

from __future__ import annotations

import signal
import sys
import textwrap
from pathlib import Path

import pytest
from integration.commands import MODULE, TRUELINE, Finished, only_run, plain, recorded, run

import trueline


def write(folder: Path, name: str, source: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return path


def both(*arguments: str, cwd: Path, stdin: str = "") -> tuple[Finished, Finished]:
    """The same command in the same folder, with plain python and with Trueline."""
    return plain(*arguments, cwd=cwd, stdin=stdin), recorded(*arguments, cwd=cwd, runs=cwd / "runs", stdin=stdin)


def assert_same(without: Finished, with_trueline: Finished) -> None:
    """Same output and exit code; on stderr Trueline may add lines of its own, never change or cut the script's."""
    assert with_trueline.stdout == without.stdout, with_trueline.stderr
    assert with_trueline.returncode == without.returncode, with_trueline.stderr
    assert without.stderr in with_trueline.stderr
    assert str(Path(trueline.__file__).parent) not in with_trueline.stderr


INSPECT = """
    '''The docstring of the script.'''
    import os, sys
    print(sys.argv)
    print(os.getcwd())
    print(sys.path)
    print(__name__, __file__, __doc__, __package__, __spec__)
    print(sys.modules["__main__"].__dict__ is globals())
    print(sorted(name for name in globals()))
    print(sys.flags.interactive, sys.stdin.isatty(), os.path.realpath(sys.executable))
    print(__loader__.__class__.__name__, __builtins__.__name__)
"""


def test_script_sees_the_same_world(tmp_path: Path) -> None:
    write(tmp_path, "code/inspect_me.py", INSPECT)
    arguments = ["--lr", "0.1", "--name", "x", "-h", "--json", "--", "-m", "a b"]
    without, with_trueline = both("code/inspect_me.py", *arguments, cwd=tmp_path)
    assert "'a b'" in without.stdout
    assert_same(without, with_trueline)


def test_script_by_its_whole_path_from_another_folder(tmp_path: Path) -> None:
    script = write(tmp_path, "code/inspect_me.py", INSPECT)
    write(tmp_path, "code/neighbour.py", "VALUE = 3\n")
    script.write_text(script.read_text() + "\nimport neighbour\nprint(neighbour.VALUE)\n")
    assert_same(*both(str(script), cwd=tmp_path / "elsewhere"))


def test_module_with_m(tmp_path: Path) -> None:
    write(tmp_path, "tool/__init__.py", "print('package imported')\n")
    write(tmp_path, "tool/part.py", "VALUE = 5\n")
    write(
        tmp_path,
        "tool/train.py",
        """
        import os, sys
        from .part import VALUE
        print(VALUE, sys.argv, sys.path, os.getcwd())
        print(__name__, __file__, __package__, __spec__.name)
        """,
    )
    write(tmp_path, "tool/__main__.py", "import sys\nprint('main', sys.argv, __name__, __package__, __spec__.name)\n")
    assert_same(*both("-m", "tool.train", "--epochs", "3", cwd=tmp_path))
    assert_same(*both("-m", "tool", "-x", cwd=tmp_path))


def test_python_m_trueline(tmp_path: Path) -> None:
    write(tmp_path, "inspect_me.py", INSPECT)
    without = plain("inspect_me.py", "--a", cwd=tmp_path)
    assert_same(without, run([*MODULE, "run", "inspect_me.py", "--a"], tmp_path, tmp_path / "runs"))


def test_stdin_reaches_the_script(tmp_path: Path) -> None:
    write(tmp_path, "read.py", "import sys\nprint(input())\nprint(repr(sys.stdin.read()))\n")
    without, with_trueline = both("read.py", cwd=tmp_path, stdin="first\nsecond\nthird")
    assert "second" in without.stdout
    assert_same(without, with_trueline)


def test_stdout_of_every_kind(tmp_path: Path) -> None:
    write(
        tmp_path,
        "say.py",
        """
        import os, subprocess, sys
        print("plain", flush=True)
        sys.stdout.buffer.write(b"bytes\\xc3\\xa9\\n"); sys.stdout.flush()
        os.write(1, b"descriptor\\n")
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        print("no newline at the end", end="")
        """,
    )
    assert_same(*both("say.py", cwd=tmp_path))


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit()", 0),
        ("sys.exit(3)", 3),
        ("sys.exit('no data found')", 1),
        ("sys.exit((1, 2))", 1),
        ("raise SystemExit", 0),
        ("os._exit(7)", 7),
        ("threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()", 0),
        ("atexit.register(lambda: print('at exit')); sys.exit(4)", 4),
        ("sys.excepthook = lambda kind, error, trace: print('hook', kind.__name__, error); raise ValueError('x')", 1),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)", -signal.SIGTERM),
    ],
)
def test_exit_code(ending: str, code: int, tmp_path: Path) -> None:
    write(tmp_path, "end.py", f"import atexit, os, signal, sys, threading, time\nprint('ran', flush=True)\n{ending}\n")
    without, with_trueline = both("end.py", cwd=tmp_path)
    assert without.returncode == code
    assert_same(without, with_trueline)


def test_keyboard_interrupt_ends_by_the_signal(tmp_path: Path) -> None:
    write(tmp_path, "stop.py", "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n")
    without, with_trueline = both("stop.py", cwd=tmp_path)
    assert without.returncode == -signal.SIGINT
    assert_same(without, with_trueline)


@pytest.mark.parametrize(
    "failing",
    [
        "raise ValueError('wrong value')",
        "open('no_such_file.csv')",
        "import part_with_error",
        "import part_with_bad_syntax",
        "print(1, 2, file='not a file')",
        "__import__('random').seed([])",
    ],
)
def test_traceback_is_the_scripts_own(failing: str, tmp_path: Path) -> None:
    write(tmp_path, "part_with_error.py", "def inner():\n    return {}['missing']\n\ninner()\n")
    write(tmp_path, "part_with_bad_syntax.py", "x = = 1\n")
    write(
        tmp_path,
        "fails.py",
        f"""
        def work():
            {failing}

        def main():
            try:
                work()
            except Exception as problem:
                raise RuntimeError("stopped") from problem

        if __name__ == "__main__":
            main()
        """,
    )
    without, with_trueline = both("fails.py", cwd=tmp_path)
    assert without.returncode == 1
    assert "direct cause" in without.stderr
    assert_same(without, with_trueline)


def test_traceback_through_torch_is_the_scripts_own(tmp_path: Path) -> None:
    """Errors inside a module's forward, in a loss, in a dataset and in backward: no frame of ours among them.

    Each is shown through `sys.excepthook`, as python shows the one that ends a script.
    """
    write(
        tmp_path,
        "fails.py",
        """
        import sys
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, Dataset

        class Broken(Dataset):
            def __len__(self): return 4
            def __getitem__(self, index): raise KeyError("no such sample")

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 2)
            def forward(self, x): return self.fc(x)

        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(torch.ones(4, 3)), torch.tensor([0, 1, 0, 1]))
            loss.backward()
            optimizer.step()

        def bad_closure(): raise ValueError("closure")

        for work in (
            lambda: net(torch.ones(4, 5)),
            lambda: nn.CrossEntropyLoss()(net(torch.ones(4, 3)), torch.ones(7).long()),
            lambda: next(iter(DataLoader(Broken()))),
            lambda: net(torch.ones(4, 3)).backward(),
            lambda: torch.softmax(torch.ones(2), dim=5),
            lambda: net.load_state_dict({"fc.weight": torch.ones(9)}),
            lambda: optimizer.step(bad_closure),
        ):
            try:
                work()
            except Exception:
                sys.excepthook(*sys.exc_info())
        net(torch.ones(4, 6))
        """,
    )
    without, with_trueline = both("fails.py", cwd=tmp_path)
    assert without.stderr.count("Traceback") >= 8
    assert_same(without, with_trueline)


def test_classes_of_main_can_be_pickled(tmp_path: Path) -> None:
    write(
        tmp_path,
        "pickles.py",
        """
        import copy, pickle, sys
        from dataclasses import dataclass

        @dataclass
        class Config:
            lr: float = 0.1

        again = pickle.loads(pickle.dumps(Config(0.5)))
        print(again, type(again) is Config, Config.__module__, sys.modules["__main__"].Config is Config, copy.deepcopy(again))
        """,
    )
    assert_same(*both("pickles.py", cwd=tmp_path))


TRAIN = """
    import multiprocessing as mp
    import os, sys
    import torch
    from torch import nn

    def train(steps):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,)))
            loss.backward()
            optimizer.step()
        return loss.item()
"""


def test_children_are_not_recorded(tmp_path: Path) -> None:
    write(
        tmp_path,
        "children.py",
        TRAIN
        + """
    def child(steps, queue):
        queue.put((train(steps), __name__))

    if __name__ == "__main__":
        torch.set_num_threads(1)
        print(train(5))
        for method in ("fork", "spawn"):
            context = mp.get_context(method)
            queue = context.Queue()
            process = context.Process(target=child, args=(3, queue))
            process.start()
            print(method, queue.get())
            process.join()
            print(process.exitcode)
        if (pid := os.fork()) == 0:
            train(2)
            print("forked child", flush=True)
            sys.exit(6)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        print(train(4))
    """,
    )
    without, with_trueline = both("children.py", cwd=tmp_path)
    assert without.returncode == 0, without.stderr
    assert_same(without, with_trueline)
    recording = only_run(tmp_path / "runs")
    assert len(recording.steps) == 9
    assert recording.info.status == "finished"


def test_record_in_a_script_with_torch_imported_before(tmp_path: Path) -> None:
    source = textwrap.dedent(TRAIN) + "import trueline\nprint(train(3))\n{block}    print(train(6))\nprint(train(2))\n"
    (tmp_path / "without.py").write_text(source.format(block="if True:\n"))
    (tmp_path / "with.py").write_text(source.format(block="with trueline.record():\n"))
    without = plain("without.py", cwd=tmp_path)
    with_block = run([sys.executable, "with.py"], tmp_path, tmp_path / "runs")
    assert with_block.returncode == 0, with_block.stderr
    assert with_block.stdout == without.stdout
    recording = only_run(tmp_path / "runs")
    assert len(recording.steps) == 6
    assert recording.info.status == "finished"


def test_torch_imported_late_and_in_a_function(tmp_path: Path) -> None:
    source = textwrap.dedent(TRAIN).replace("import torch\nfrom torch import nn\n", "")
    source = source.replace("def train(steps):\n", "def train(steps):\n    import torch\n    from torch import nn\n")
    (tmp_path / "late.py").write_text(source + "print('torch' in sys.modules)\nprint(train(4))\n")
    without, with_trueline = both("late.py", cwd=tmp_path)
    assert without.stdout.startswith("False")
    assert_same(without, with_trueline)
    assert len(only_run(tmp_path / "runs").steps) == 4


def test_run_name_option_is_ours_only_before_the_script(tmp_path: Path) -> None:
    write(tmp_path, "inspect_me.py", INSPECT)
    without = plain("inspect_me.py", "--name", "theirs", cwd=tmp_path)
    finished = run([*TRUELINE, "run", "--name", "ours", "inspect_me.py", "--name", "theirs"], tmp_path, tmp_path / "runs")
    assert_same(without, finished)
