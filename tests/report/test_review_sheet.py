"""The review sheet of a small real run: one file, most suspicious first, every label."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from builders import Row, build_run, trueline

from trueline.errors import TruelineError
from trueline.report.review_sheet import png, review_cards, review_sheet
from trueline.store import Run

CLASSES, PER_CLASS, PASSES, WRONG = 4, 30, 6, (5, 47, 90)


def judged_rows() -> dict[str, list[Row]]:
    """120 samples in batches of 30 over six passes; three of them have a label that the model denies throughout."""
    prints = np.arange(1, CLASSES * PER_CLASS + 1, dtype=">u8")
    truth = np.arange(CLASSES * PER_CLASS) % CLASSES
    labels = truth.copy()
    labels[list(WRONG)] = (truth[list(WRONG)] + 1) % CLASSES
    rows: dict[str, list[Row]] = {"batch": [], "score": [], "sample": [], "loader": []}
    rows["loader"].append((2, "TensorDataset", 120, 30, "SequentialSampler", 3, "{}"))
    seq = 1000
    for number in range(PASSES):
        for position in range(4):
            part = slice(30 * position, 30 * position + 30)
            margins = np.where(labels[part] == truth[part], 3.0, -3.0) + 0.01 * np.arange(30)
            targets = labels[part].astype("<f8").tobytes()
            rows["batch"].append(
                (seq, 0, 2, number, position, 0.0, 30, prints[part].tobytes(), targets, "class", "[]", None)
            )  # fmt: skip
            rows["score"].append(
                (
                    seq + 1, 0, seq, 1, labels[part].astype("<i4").tobytes(), margins.astype("<f4").tobytes(),
                    truth[part].astype("<i4").tobytes(),
                )
            )  # fmt: skip
            seq += 2
    picture = np.linspace(0, 1, 64, dtype="<f4").tobytes()
    rows["sample"] = [(1000, 0, int(labels[place]), f"{place + 1:016x}", "float32", "[1, 8, 8]", picture) for place in range(100)]
    return rows


def test_suspicious_samples_come_first_and_every_label_is_there(tmp_path: Path) -> None:
    run = Run(build_run(tmp_path / "run", [1.0], rows=judged_rows()))
    judged, cards = review_cards(run)
    run.close()
    assert judged == CLASSES * PER_CLASS
    assert len(cards) == 50
    assert [card.odd for card in cards[:4]] == [True, True, True, False]
    assert {card.label for card in cards} == set(range(CLASSES))
    assert "index 5" in {part for card in cards[:3] for part in card.place.split(", ")}


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    run = Run(build_run(tmp_path / "run", [1.0], rows=judged_rows()))
    page = review_sheet(run)
    run.close()
    assert not re.search(r"https?://|<script|<link", page)
    pictures = re.findall(r"data:image/png;base64,([^\"]+)", page)
    assert len(pictures) == 50
    assert base64.b64decode(pictures[0]).startswith(b"\x89PNG")


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_holds_the_pixels(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels), dtype=np.uint8)
    file = png(pixels)
    assert struct.unpack(">II", file[16:24]) == (7, 5)
    start = file.index(b"IDAT")
    (length,) = struct.unpack(">I", file[start - 4 : start])
    lines = np.frombuffer(zlib.decompress(file[start + 4 : start + 4 + length]), np.uint8).reshape(5, 1 + 7 * channels)
    assert (lines[:, 1:] == pixels.reshape(5, -1)).all()


def test_text_is_shown_and_cannot_break_the_page(tmp_path: Path) -> None:
    rows = judged_rows()
    rows["sample"] = [(1000, 0, 1, f"{6:016x}", "text", "[]", b"<b>refund</b>")]
    run = Run(build_run(tmp_path / "run", [1.0], rows=rows))
    assert "&lt;b&gt;refund&lt;/b&gt;" in review_sheet(run)
    run.close()


def test_a_run_without_samples_says_so(tmp_path: Path) -> None:
    run = Run(build_run(tmp_path / "run", [1.0]))
    with pytest.raises(TruelineError, match="no samples to review"):
        review_sheet(run)
    run.close()


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    build_run(tmp_path / ".trueline" / "runs" / "first", [1.0], rows=judged_rows())
    done = trueline("review", "first", "-o", "sheet.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sheet.html" in done.stdout
    assert (tmp_path / "sheet.html").read_text().startswith("<!doctype html>")
