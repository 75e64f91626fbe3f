"""What may appear on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from trueline.output import printable, warn


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("net.fc1", "net.fc1"),
        ("训练 naïve été 🙂 × –", "训练 naïve été 🙂 × –"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
        ("a\x1b[31mb\x07", "a\\x1b[31mb\\x07"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("a\x9bb\x7f", "a\\x9bb\\x7f"),
        ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
        ("a\u200bb\ufeffc\u00add\u2060e\u3164f", "a\\u200bb\\ufeffc\\xadd\\u2060e\\u3164f"),
        ("a\u2028b\x85c", "a\\u2028b\\x85c"),
        ("a\udcffb\U000e0041", "a\\udcffb\\U000e0041"),
    ],
)
def test_what_is_not_to_be_seen_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    warn("the layer a\nb\x1b[31m failed")
    assert capsys.readouterr() == ("", "trueline: the layer a\\nb\\x1b[31m failed\n")


def test_a_stream_of_the_scripts_own_that_raises_does_not_end_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tee(io.StringIO):
        def write(self, text: str) -> int:
            raise RuntimeError(text)

    for stream in (Tee(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        warn("something")
