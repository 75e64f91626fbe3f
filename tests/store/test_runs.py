"""The folder of runs: names, the latest one, deleting, sizes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from builders import build_run, run_info

from trueline.errors import CannotRecord, RunAmbiguous, RunExists, RunNotFound, TruelineError
from trueline.store import begin_run, delete_run, find_run, join_run, list_runs, runs_folder, size_of, write_info


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRUELINE_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert runs_folder() == folder
    monkeypatch.setenv("TRUELINE_RUNS", "")
    assert runs_folder() == Path(".trueline/runs")


def test_free_names_are_made_of_the_script_and_the_time(folder: Path) -> None:
    made = [begin_run("train").directory for _ in range(4)]
    assert len(set(made)) == 4
    assert all(path.is_dir() and path.parent == folder for path in made)
    assert all(re.fullmatch(r"train-\d{8}-\d{6}(-\d)?", path.name) for path in made)


def test_a_given_name_is_used_once(folder: Path) -> None:
    directory = begin_run("train", "first try").directory
    assert directory == folder / "first try"
    write_info(directory, run_info("first try"))
    with pytest.raises(RunExists, match="trueline runs delete 'first try'"):
        begin_run("train", "first try")


def test_ranks_share_a_directory(folder: Path) -> None:
    ranks = [join_run("ranks", rank) for rank in range(3)]
    assert {rank.directory for rank in ranks} == {folder / "ranks"}
    assert [rank.number for rank in ranks] == [1, None, None]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a/", "/tmp/x", "../x"])  # noqa: S108 - never made
def test_names_that_lead_elsewhere_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(TruelineError, match="plain file name"):
        begin_run("train", name)
    assert not folder.exists()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", [None, "mine"])
def test_a_folder_that_is_a_broken_link_is_an_error(folder: Path, name: str | None) -> None:
    folder.symlink_to(folder.parent / "unmounted" / "disk")
    with pytest.raises(CannotRecord, match="runs"):
        begin_run("train", name)


def test_found_by_name_by_path_and_as_the_latest(folder: Path, tmp_path: Path) -> None:
    build_run(folder / "new", started="2026-01-03T00:00:00")
    build_run(folder / "old", started="2026-01-02T00:00:00")
    elsewhere = build_run(tmp_path / "copied")
    assert find_run("old") == folder / "old"
    assert find_run(str(elsewhere)) == elsewhere
    assert find_run("latest") == folder / "new"
    assert [path.name for path, _ in list_runs()] == ["old", "new"]


def test_found_by_how_the_name_begins(folder: Path) -> None:
    for name in ("train-1", "train-12", "other"):
        build_run(folder / name)
    assert find_run("oth") == folder / "other"
    # A whole name is no beginning of another.
    assert find_run("train-1") == folder / "train-1"
    with pytest.raises(RunAmbiguous, match=r"2 runs in .* begin with 'train': train-1, train-12\. Give more"):
        find_run("train")
    with pytest.raises(RunNotFound):
        find_run("")


def test_the_latest_is_the_one_that_began_last_whatever_the_clock_said(folder: Path) -> None:
    build_run(folder / "of an older Trueline", started="2030-01-01T00:00:00")
    build_run(folder / "first", started="2026-03-01T00:00:00", number=1)
    build_run(folder / "clock set back", started="2026-01-01T00:00:00", number=2)
    found = [find_run(f"latest~{back}").name for back in range(3)]
    assert found == ["clock set back", "first", "of an older Trueline"]
    assert find_run("latest").name == found[0]
    with pytest.raises(RunNotFound, match=r"no run latest~3 .* it holds 3"):
        find_run("latest~3")


@pytest.mark.parametrize("name", ["latest", "latest~2", ".new-1-1"])
def test_names_that_stand_for_other_runs_are_refused(name: str) -> None:
    with pytest.raises(TruelineError, match="stands for another"):
        begin_run("train", name)


def test_numbers_go_on_where_the_sequence_is_lost(folder: Path) -> None:
    build_run(folder / "old", number=41)
    assert begin_run("train").number == 42
    assert begin_run("train").number == 43
    (folder / ".sequence").write_bytes(b"garbage")
    assert begin_run("train").number == 42


def test_runs_that_start_at_once_share_neither_number_nor_name() -> None:
    """Forks, so that they do start at once."""
    reader, writer = os.pipe()
    children = []
    for _ in range(16):
        child = os.fork()
        if child == 0:
            begun = [begin_run("train") for _ in range(5)]
            os.write(writer, "".join(f"{each.number} {each.directory}\n" for each in begun).encode())
            os._exit(0)
        children.append(child)
    os.close(writer)
    with os.fdopen(reader) as answers:
        lines = answers.read().splitlines()
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 16
    numbers, names = zip(*(line.split(" ", 1) for line in lines), strict=True)
    assert sorted(map(int, numbers)) == list(range(1, 81))
    assert len(set(names)) == 80


def test_a_name_that_is_being_recorded_cannot_be_deleted(folder: Path) -> None:
    build_run(folder / "mine", status="running")
    with pytest.raises(RunExists, match=r"is being recorded in .* Give another --name") as refused:
        begin_run("train", "mine")
    assert "delete" not in str(refused.value)


def test_an_empty_folder_gives_way(folder: Path) -> None:
    (folder / "mine").mkdir(parents=True)
    assert begin_run("train", "mine").directory == folder / "mine"


def test_a_name_in_use_by_something_else(folder: Path) -> None:
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(RunExists, match="no run of Trueline's"):
        begin_run("train", "notes")
    assert (folder / "notes" / "thesis.tex").is_file()
    assert not list(folder.glob(".new-*"))


def test_a_script_whose_name_is_as_long_as_a_name_can_be() -> None:
    assert begin_run("x" * 255).directory.is_dir()


def test_not_found(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="There are no runs"):
        find_run("latest")
    with pytest.raises(RunNotFound, match="No run named 'nothing'"):
        find_run("nothing")
    with pytest.raises(RunNotFound, match="not a Trueline run directory"):
        find_run(str(tmp_path))
    assert not folder.exists()


def test_the_list_passes_over_what_is_not_a_run(folder: Path) -> None:
    build_run(folder / "good")
    (folder / "empty").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_bytes(b"\xff")
    (folder / "notes.txt").write_text("", encoding="utf-8")
    assert [path.name for path, _ in list_runs()] == ["good"]


def test_delete(folder: Path) -> None:
    build_run(folder / "one", [1.0])
    build_run(folder / "two", [1.0])
    delete_run(folder / "one")
    assert [path.name for path in folder.iterdir()] == ["two"]


def test_delete_refuses_a_run_that_is_being_recorded(folder: Path) -> None:
    build_run(folder / "run", [1.0], status="running")
    with pytest.raises(TruelineError, match="still being recorded by process"):
        delete_run(folder / "run")
    assert (folder / "run" / "rank0.sqlite").is_file()


def test_delete_refuses_what_is_not_a_run(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("", encoding="utf-8")
    with pytest.raises(RunNotFound):
        delete_run(precious)
    assert (precious / "thesis.tex").is_file()


def test_size(tmp_path: Path) -> None:
    (tmp_path / "run" / "tensors").mkdir(parents=True)
    (tmp_path / "run" / "a").write_bytes(b"12345")
    (tmp_path / "run" / "tensors" / "b").write_bytes(b"123")
    (tmp_path / "run" / "gone").symlink_to(tmp_path / "nowhere")
    assert size_of(tmp_path / "run") == 8
