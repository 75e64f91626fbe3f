"""Damaged files of every kind end in a TruelineError that names them, or are read; `make fuzz` tries more of them."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from fuzz import campaign
from fuzz.campaign import Ends, input_of, try_one
from fuzz.readers import READERS

from trueline.errors import TruelineError

INPUTS = 3000


def test_no_input_ends_otherwise() -> None:
    """The same inputs in every run."""
    found = campaign.campaign(INPUTS, 240, 0, [])
    assert not {name: ends.wrong for name, ends in found.items() if ends.wrong}
    assert sum(ends.kinds.total() for ends in found.values()) > 0.9 * INPUTS


@pytest.mark.parametrize("name", READERS)
def test_what_is_whole_is_read(tmp_path: Path, name: str) -> None:
    """Otherwise the fuzzer would look at the first border alone."""
    reader = READERS[name]
    (tmp_path / reader.file).parent.mkdir(exist_ok=True)
    for beside, content in reader.files().items():
        (tmp_path / beside).write_bytes(content)
    ends = Ends()
    campaign.leave_out_what_is_there()
    for number, seed in enumerate(reader.seeds()):
        try_one(name, tmp_path, seed, ends, number)
    assert ends.kinds["read"] > 0, ends
    assert not ends.wrong


def test_an_input_can_be_made_again() -> None:
    assert [input_of("json", 3, number) for number in range(20)] == [input_of("json", 3, number) for number in range(20)]


def _fault(kind: str) -> None:
    if kind == "exception":
        raise KeyError("x")
    if kind == "unnamed":
        raise TruelineError("something is wrong")
    if kind == "death":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "memory":
        assert bytearray(b"x") * campaign.MOST_BYTES
    while kind == "time":
        pass


@pytest.mark.parametrize(
    ("kind", "words"),
    [("exception", "KeyError"), ("unnamed", "not named"), ("death", "SIGSEGV"), ("memory", "MiB"), ("time", "longer than")],
)
def test_what_goes_wrong_is_seen(monkeypatch: pytest.MonkeyPatch, kind: str, words: str) -> None:
    """The campaign is worth as much as what it notices."""
    monkeypatch.setattr(campaign, "MOST_SECONDS", 0.2 if kind == "time" else 10.0)
    monkeypatch.setitem(READERS, "map", replace(READERS["map"], read=lambda _: _fault(kind)))
    assert words in " ".join(campaign.campaign(2, 30, 0, ["map"])["map"].wrong)
