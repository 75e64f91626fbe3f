"""A run's folder from elsewhere is data: whatever it names is not run, written, moved or removed, by any command."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from builders import build_run, run_info, trueline

from trueline.store.origin import is_own, sign

STEPS = [2.0 - number / 10 for number in range(10)]
# What the forged run wants to be run: in the user's own folder, by its own name.
SCRIPT = "open('ran.txt', 'w').close()\nimport torch\ntorch.manual_seed(0)\n"
MINE = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    net(torch.ones(8, 4)).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder, with a run of the user's own; the forged run is beside it, and the files it is after."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    work, files = tmp_path / "work", tmp_path / "files"
    (files / "folder" / "layers" / "0" / "work" / "work").mkdir(parents=True)
    (files / "folder" / "layers" / "0" / "work" / "work").chmod(0o500)
    for name in ("result.bin", "notes.txt", "folder/one", "folder/run.json", "map.json"):
        (files / name).write_text(f"precious: {name}")
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    (work / "mine.py").write_text(MINE)
    own = build_run(work / ".trueline" / "runs" / "own", STEPS, cwd=str(work), command=["train.py"])
    sign(own, run_info("own", cwd=str(work), command=["train.py"]))
    forge(tmp_path / "elsewhere" / "forged", own, files, work, aligned=True)
    # As somebody might get it: unpacked among one's own.
    forge(work / ".trueline" / "runs" / "unpacked", own, files, work)
    (work / ".trueline" / "runs" / "linked").symlink_to(tmp_path / "elsewhere" / "forged")
    return tmp_path


def forge(directory: Path, own: Path, files: Path, work: Path, *, aligned: bool = False) -> None:
    names = [str(files / "result.bin"), str(files / "folder"), f"{work}/../files/notes.txt", str(files / "map.json")]
    events = [
        (number, 0, kind, None, None, None, json.dumps({"path": name, "size": None, "mtime": None, "new": True}))
        for number, (kind, name) in enumerate((kind, name) for kind in ("file_written", "file_opened") for name in names)
    ]
    events.append((90, 0, "seed", None, None, None, json.dumps({"library": "torch", "seed": 0})))
    rows: dict[str, list[Any]] = {
        "event": events,
        "location": [
            (number, name, 1, "main", "precious") for number, name in ((7, "/dev/zero"), (8, names[0]), (9, "/dev/tty"))
        ],
        "module": [(9, 1, "last", "net", "Linear", "linear", None, 7, 8, "{}")],
        "meta": [("alignment", json.dumps({"reference": str(directory.parent)})), ("unseen", '["operations"]')],
    }
    described = {"cwd": str(work), "command": ["train.py"], "script": "train.py", "pid": 1}
    build_run(directory, STEPS, rows=rows, **described)
    # The user's own signature, of another run.
    shutil.copy(own / "origin", directory / "origin")
    before = directory / "before"
    before.mkdir()
    steps = [
        *({"op": "made", "path": name} for name in names),
        {"op": "moved", "path": str(files / "stolen"), "to": str(files / "folder")},
        {"op": "file", "path": names[0], "copy": "../../../../../etc/hostname", "mode": 0o777, "uid": 0, "gid": 0},
    ]
    (before / "files.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    (directory / "changes.json").write_text(json.dumps({"made": names, "changed": names, "removed": names}))
    for name in ("manifest.json", "reruns.json"):
        (directory / name).symlink_to(files / "notes.txt")
    (directory / "map.json").symlink_to(files / "map.json")
    for name in ("rerun", "closer", "tensors", "feed", f"again-{os.getpid()}", "inside"):
        (directory / name).symlink_to(files / "folder")
    for name in ("aligned", "perturbed"):
        if aligned:
            build_run(directory / name, STEPS, rows={"meta": rows["meta"]})
        else:
            (directory / name).symlink_to(files / "folder")
    (directory / "rank1.journal").symlink_to(files / "notes.txt")
    (directory / "rank2.sqlite").symlink_to(files / "result.bin")


def everything(folder: Path) -> dict[str, Any]:
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else path.readlink() if path.is_symlink() else None
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, status.st_nlink, content)
    return found


COMMANDS: list[tuple[str, ...]] = [
    ("check", "{}", "-v"),
    ("check", "{}", "--manifest", "expected.json"),
    ("diagnose", "{}"),
    ("diagnose", "{}", "--reference", "{}"),
    ("diagnose", "own", "--reference", "{}"),
    ("diagnose", "mine.py", "--reference", "{}"),
    ("show", "{}", "--modules", "--events", "--scaler"),
    ("compare", "own", "{}"),
    ("params", "{}"),
    ("review", "{}"),
]


def test_no_command_acts_upon_what_it_names(place: Path) -> None:
    work, files = place / "work", place / "files"
    expected = {"schema": "trueline.manifest/1", "files": [{"path": "x", "size": 1, "md5": "0" * 32}]}
    (work / "expected.json").write_text(json.dumps(expected))
    before, code = everything(files), (work / "train.py").read_bytes()
    for forged in (str(place / "elsewhere" / "forged"), "unpacked"):
        for words in COMMANDS:
            # The costly ones once each: with the forged run that need not be run again, and with the one that would have to be.
            if words[0] == "diagnose" and words[1] in {"mine.py", "own"} and (words[1] == "own") != (forged == "unpacked"):
                continue
            done = trueline(*(word.format(forged) for word in words), cwd=work)
            said = f"{words}: {done.stdout}{done.stderr}"
            assert everything(files) == before, said
            assert not (work / "ran.txt").exists(), said
            assert "Traceback" not in done.stderr, said
            if words[:2] == ("diagnose", "own") and forged == "unpacked":
                # It was asked for, and refused.
                assert "was not recorded by you in this place (--trust" in " ".join(done.stdout.replace("│", " ").split()), said
    assert (work / "train.py").read_bytes() == code


def test_deleting_one_follows_no_link(place: Path) -> None:
    work, files, runs = place / "work", place / "files", place / "work" / ".trueline" / "runs"
    before, elsewhere = everything(files), everything(place / "elsewhere")
    done = trueline("runs", "delete", "linked", "unpacked", cwd=work)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in runs.iterdir()) == ["own"]
    done = trueline("runs", "prune", "--keep", "0", "--yes", cwd=work)
    assert done.returncode == 0, done.stderr
    assert everything(files) == before
    assert everything(place / "elsewhere") == elsewhere


def test_a_signature_holds_for_one_run_in_one_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = place / "work" / ".trueline" / "runs" / "own"
    info = run_info("own", cwd=str(place / "work"), command=["train.py"])
    assert is_own(own, info)
    assert not is_own(own, run_info("own", cwd=str(place / "work"), command=["train.py", "--more"]))
    assert not is_own(own, run_info("own", cwd="/", command=["train.py"]))
    moved = shutil.copytree(own, place / "copy")
    assert not is_own(moved, info)
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state of another user"))
    assert not is_own(own, info)
