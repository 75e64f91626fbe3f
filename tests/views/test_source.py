"""The text of a script is that of the run, whatever became of the file since."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from builders import build_run
from case_runner import case_files, recording_of

from trueline.checks import check_of_id
from trueline.model import Conclusion, Location
from trueline.store import SCRIPT_FILE, Run, read_info, write_info
from trueline.views.source import script_text, text_around, text_of

SCRIPT = "import torch\n\nnet = torch.nn.Linear(2, 2)\n"
LINE = Location("train.py", 3, None, None, "net = torch.nn.Linear(2, 2)")


def run_of(folder: Path, *, kept: bytes | None, now: bytes | None) -> Run:
    directory = build_run(folder / "run", cwd=str(folder), script="./train.py")
    for path, content in ((directory / SCRIPT_FILE, kept), (folder / "train.py", now)):
        if content is not None:
            path.write_bytes(content)
    return Run(directory)


@pytest.mark.parametrize(
    ("kept", "now"),
    [
        (SCRIPT, "# changed\n" + SCRIPT),
        (SCRIPT, "net = ("),
        (SCRIPT, None),
        (None, SCRIPT),
        ("# not what ran\n", SCRIPT),
        (SCRIPT.replace("\n", "\r\n"), None),
        ("# \x0c \u2028\n" + SCRIPT.removeprefix("import torch\n"), None),
    ],
)
def test_the_text_that_has_the_line(tmp_path: Path, kept: str | None, now: str | None) -> None:
    run = run_of(tmp_path, kept=kept and kept.encode(), now=now and now.encode())
    text = text_around(run, LINE)
    assert text is not None
    assert text.line(3) == LINE.source
    assert text.tree.body[-1].lineno == 3


@pytest.mark.parametrize("now", [None, "# changed\n" + SCRIPT, "net = ("])
def test_a_file_that_was_not_kept_and_has_changed(tmp_path: Path, now: str | None) -> None:
    assert text_around(run_of(tmp_path, kept=None, now=now and now.encode()), LINE) is None


def test_encodings_that_the_file_declares(tmp_path: Path) -> None:
    run = run_of(tmp_path, kept="# coding: latin-1\n# é\nx = 1\n".encode("latin-1"), now=None)
    assert script_text(run) == "# coding: latin-1\n# é\nx = 1\n"
    known = text_of(run, "train.py")
    assert known is not None
    assert known.line(3) == "x = 1"


def test_other_files_are_read_where_they_are(tmp_path: Path) -> None:
    run = run_of(tmp_path, kept=SCRIPT.encode(), now=None)
    (tmp_path / "model.py").write_text("width = 3\n")
    assert text_of(run, "elsewhere.py") is None
    known = text_of(run, "model.py")
    assert known is not None
    assert known.lines[0] == "width = 3"


@pytest.mark.parametrize("check", ["hp.02", "dp.01"])
def test_findings_keep_their_lines_when_the_script_changes(tmp_path: Path, check: str) -> None:
    path = case_files(check, "faulty")[0]
    directory = shutil.copytree(recording_of(path), tmp_path / "run")
    write_info(directory, msgspec.structs.replace(read_info(directory), cwd=str(tmp_path)))
    (tmp_path / path.name).write_text("# The script was rewritten.\n\n\n")
    before, after = Run(recording_of(path)), Run(directory)
    try:
        found = check_of_id(check).conclude(before)
        assert found.conclusion is Conclusion.PROBLEM_FOUND
        assert check_of_id(check).conclude(after) == found
    finally:
        before.close()
        after.close()
