"""Manifests of real folders: what is in them, what is left out, and every way in which two can differ."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueline.errors import TruelineError
from trueline.store import manifest
from trueline.store.manifest import Differences, FileEntry, Manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    (root / "train").mkdir(parents=True)
    (root / ".cache").mkdir()
    (root / "train" / "a.bin").write_bytes(b"a" * 3_000_000)
    (root / "train" / "b.bin").write_bytes(b"")
    (root / "labels.csv").write_text("x,y\n1,2\n")
    (root / ".hidden").write_text("no")
    (root / ".cache" / "c").write_text("no")
    return root


def test_holds_every_visible_file_with_size_and_md5(folder: Path) -> None:
    read: list[int] = []
    made = manifest.make(folder, read.append)
    assert [entry.path for entry in made.files] == ["labels.csv", "train/a.bin", "train/b.bin"]
    assert made.files[1].size == 3_000_000
    assert made.files[1].md5 == hashlib.md5(b"a" * 3_000_000, usedforsecurity=False).hexdigest()
    assert sum(read) == made.size


def test_written_and_read_again_is_the_same(folder: Path, tmp_path: Path) -> None:
    made = manifest.make(folder)
    manifest.write(made, tmp_path / "m.json")
    assert manifest.read(tmp_path / "m.json") == made
    assert manifest.differences(made, manifest.make(folder)).total == 0


def test_every_kind_of_difference_is_told(folder: Path) -> None:
    before = manifest.make(folder)
    (folder / "labels.csv").write_text("x,y\n1,3\n")
    (folder / "train" / "a.bin").write_bytes(b"a" * 10)
    (folder / "train" / "b.bin").unlink()
    (folder / "new.csv").write_text("x")
    found = manifest.differences(before, manifest.make(folder))
    assert found == Differences(["train/b.bin"], ["train/a.bin"], [], ["labels.csv"], ["new.csv"])


def test_a_manifest_written_by_hand_needs_only_path_size_and_md5(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"files": [{"path": "a", "size": 1, "md5": "AB"}]}')
    read = manifest.read(tmp_path / "m.json")
    assert read.files == [FileEntry("a", 1, "AB")]
    assert manifest.difference_of(read.files[0], FileEntry("a", 1, "ab")) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b'{"files": [{"path": 1}]}', b'{"files": [], "schema": "other/2"}'])
def test_what_is_no_manifest_is_one_message(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.json").write_bytes(content)
    with pytest.raises(TruelineError, match=r"m\.json"):
        manifest.read(tmp_path / "m.json")


_entries = st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(0, 3), st.sampled_from(["00", "11"])))


@given(_entries, _entries)
def test_differences_cover_each_path_once(one: dict[str, tuple[int, str]], other: dict[str, tuple[int, str]]) -> None:
    expected, actual = (Manifest([FileEntry(path, *rest) for path, rest in side.items()]) for side in (one, other))
    found = manifest.differences(expected, actual)
    told = [*found.missing, *found.truncated, *found.longer, *found.changed, *found.extra]
    assert sorted(told) == sorted(path for path in {*one, *other} if one.get(path) != other.get(path))
