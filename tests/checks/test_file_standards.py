"""Checksums beside a file, in the forms in which people write them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from trueline.checks.ds_04_other_dataset.file_standards import standard_beside

CONTENT = b"0,1,2\n"
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("manifest.json", json.dumps({"train.csv": MD5}), ("md5", MD5, None)),
        ("manifest.json", json.dumps({"train.csv": {"size": 6, "md5": MD5, "records": 1}}), ("md5", MD5, 6)),
        ("checksums.json", json.dumps({"files": [{"name": "train.csv", "sha256": SHA256}]}), ("sha256", SHA256, None)),
        ("MD5SUMS", f"{MD5}  train.csv\n", ("md5", MD5, None)),
        ("train.csv.sha256", f"{SHA256}  train.csv\n", ("sha256", SHA256, None)),
    ],
)
def test_the_checksum_is_found(tmp_path: Path, name: str, text: str, expected: tuple[str, str, int | None]) -> None:
    (tmp_path / "train.csv").write_bytes(CONTENT)
    (tmp_path / name).write_text(text)
    found = standard_beside(tmp_path / "train.csv")
    assert found is not None
    assert (found.kind, found.checksum, found.size) == expected


@pytest.mark.parametrize("text", ["[1, 2]", '{"train.csv": "no checksum"}', "{", '{"files": 3}', '{"other.csv": "' + MD5 + '"}'])
def test_other_content_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.csv").write_bytes(CONTENT)
    (tmp_path / "manifest.json").write_text(text)
    assert standard_beside(tmp_path / "train.csv") is None
