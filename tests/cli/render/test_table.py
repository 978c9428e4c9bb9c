"""Tables for a pipe and for a terminal; what is stored is not obeyed."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from holdfast.cli.render.table import Cell, TextColumn, TextTable, drawn, plain

TABLE = TextTable(
    [
        TextColumn("id", whole=True),
        TextColumn("n", right=True),
        TextColumn("when", room=100),
        TextColumn("detail"),
    ],
    [
        ["a", 7, Cell("3 min ago", piped="2030-03-17T17:46:40Z"), "two words"],
        ["bbb", 12345, None, ""],
    ],
)


def terminal(table: TextTable, width: int) -> str:
    console = Console(file=StringIO(), width=width, color_system=None, force_terminal=True)
    console.print(drawn(table, width))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_pipe_gets_aligned_columns() -> None:
    assert list(plain(TABLE)) == [
        "ID       N  WHEN                  DETAIL",
        "a        7  2030-03-17T17:46:40Z  two words",
        "bbb  12345  -                     -",
    ]


def test_a_pipe_gets_the_header_of_an_empty_table() -> None:
    assert list(plain(TextTable(TABLE.columns, []))) == ["ID  N  WHEN  DETAIL"]


def test_a_narrow_terminal_gets_fewer_columns() -> None:
    assert "3 min ago" in terminal(TABLE, 100)
    assert "3 min ago" not in terminal(TABLE, 99)


def test_a_text_that_would_be_cut_to_a_letter_is_left_out() -> None:
    table = TextTable(
        [TextColumn("id", whole=True), TextColumn("why", cut=True)], [["a" * 20, "no room"]]
    )
    assert terminal(table, 29).split() == ["id", "why", "a" * 20, "no", "room"]
    assert terminal(table, 28).split() == ["id", "why", "a" * 20, "no", "ro…"]
    assert terminal(table, 27).split() == ["id", "a" * 20]


def test_nothing_stored_is_obeyed() -> None:
    hostile = "[red]x[/red] \x1b[2J\x07 :boom:\nnext\ttab \u202e"
    table = TextTable([TextColumn("detail")], [[hostile]])
    seen = "[red]x[/red] \\x1b[2J\\x07 :boom:\\nnext\\ttab \\u202e"
    assert list(plain(table))[1] == seen
    assert seen in terminal(table, 120)
