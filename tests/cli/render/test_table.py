"""Tables for a pipe and for a terminal; what is stored is not obeyed."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from holdfast.cli.render.table import Cell, Columns, Rows, TextColumn, drawn, plain

COLUMNS = [
    TextColumn("id", whole=True),
    TextColumn("n", right=True),
    TextColumn("when", room=100),
    TextColumn("detail"),
]
ROWS: Rows = [
    ["a", 7, Cell("3 min ago", piped="2030-03-17T17:46:40Z"), "two words"],
    ["bbb", 12345, None, ""],
]


def terminal(columns: Columns, rows: Rows, width: int) -> str:
    console = Console(file=StringIO(), width=width, color_system=None, force_terminal=True)
    console.print(drawn(columns, rows, width))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_pipe_gets_aligned_columns() -> None:
    assert list(plain(COLUMNS, ROWS)) == [
        "ID       N  WHEN                  DETAIL",
        "a        7  2030-03-17T17:46:40Z  two words",
        "bbb  12345  -                     -",
    ]


def test_a_pipe_gets_the_header_of_an_empty_table() -> None:
    assert list(plain(COLUMNS, [])) == ["ID  N  WHEN  DETAIL"]


def test_a_narrow_terminal_gets_fewer_columns() -> None:
    assert "3 min ago" in terminal(COLUMNS, ROWS, 100)
    assert "3 min ago" not in terminal(COLUMNS, ROWS, 99)


def test_a_text_that_would_be_cut_to_a_letter_is_left_out() -> None:
    columns = [TextColumn("id", whole=True), TextColumn("why", cut=True)]
    rows = [["a" * 20, "no room"]]
    assert terminal(columns, rows, 29).split() == ["id", "why", "a" * 20, "no", "room"]
    assert terminal(columns, rows, 28).split() == ["id", "why", "a" * 20, "no", "ro…"]
    assert terminal(columns, rows, 27).split() == ["id", "a" * 20]


def test_nothing_stored_is_obeyed() -> None:
    hostile = "[red]x[/red] \x1b[2J\x07 :boom:\nnext\ttab \u202e"
    columns, rows = [TextColumn("detail")], [[hostile]]
    seen = "[red]x[/red] \\x1b[2J\\x07 :boom:\\nnext\\ttab \\u202e"
    assert list(plain(columns, rows))[1] == seen
    assert seen in terminal(columns, rows, 120)
