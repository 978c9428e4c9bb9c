"""Text of others keeps what can be read, and shows what cannot be seen."""

from __future__ import annotations

import pytest

from holdfast.web.pages.foreign_text import shorten_end, shown


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain", "plain"),
        ("ümläut 中文 ελ", "ümläut 中文 ελ"),
        ("two\nlines\tand tab", "two\nlines\tand tab"),
        ("exe\u202egnp", "exe\\u202egnp"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("nul\x00", "nul\\x00"),
        ("\u200bzero\ufeff", "\\u200bzero\\ufeff"),
        ("half \ud800 pair", "half \\ud800 pair"),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_shown(text: str, safe: str) -> None:
    assert shown(text) == safe
    shown(text).encode()


def test_what_is_too_long_is_cut() -> None:
    assert shorten_end("abcdef", 6) == "abcdef"
    assert shorten_end("abcdefg", 6) == "abcde…"
