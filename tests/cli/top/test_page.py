"""A page of text: folded, safe, and turned where it is longer than the screen."""

from __future__ import annotations

from holdfast.cli.top.page import TextPage

EVIL = "\x1b[2J\x1b]0;t\x07" + "evil " * 20


def text(page: TextPage, width: int = 40, height: int = 6) -> list[str]:
    lines = page.lines(width, height)
    assert len(lines) == height
    assert max(line.cell_len for line in lines) <= width
    return [line.plain for line in lines]


def test_it_is_folded_and_safe() -> None:
    shown = text(TextPage([EVIL, "", "end"]), 30, 12)
    assert "\x1b" not in "".join(shown)
    assert shown[-1] == "any key goes back"


def test_wide_characters_are_folded_and_not_cut() -> None:
    shown = "".join(text(TextPage(["日本語" * 30 + "end"]), 40, 24))
    assert shown.count("語") == 30
    assert "end" in shown


def test_a_long_page_is_turned() -> None:
    page = TextPage([f"line {n}" for n in range(12)])
    assert not page.turned("j")  # It has not been shown.
    assert text(page) == [
        *(f"line {n}" for n in range(5)),
        "5/12  j/k, Space: more; others go back",
    ]
    assert page.turned("space")
    assert text(page)[0] == "line 4"
    assert page.turned("k")
    assert text(page)[0] == "line 3"
    assert page.turned("G")
    assert text(page)[-2] == "line 11"
    assert page.turned("down")
    assert text(page)[-2] == "line 11"
    assert page.turned("g")
    assert text(page)[0] == "line 0"
    assert not page.turned("x")
    # In a terminal that has become larger nothing is left to turn.
    assert text(page, height=30)[-1] == "any key goes back"
    assert not page.turned("j")


def test_a_terminal_without_room() -> None:
    assert len(TextPage(["a", "b"]).lines(1, 1)) == 1
