"""Tables: for a person at a terminal, and for a program at the other end of a pipe.

Owns both renderings of one table. At a terminal it is drawn, coloured and fitted to the
width. In a pipe it is aligned columns under a header: never cut, never wrapped, `-` where
there is nothing, moments in full, and free text only in the last column.

What is stored comes from tasks, so it is not trusted: control characters are made visible,
and nothing is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.core.text import one_line

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

_NOTHING: Final = "-"
_GAP: Final = "  "
_ID: Final = 36


@dataclass(frozen=True, slots=True)
class Cell:
    """One value, where a terminal gets more than its text."""

    text: str | None
    style: str = ""
    piped: str | None = None
    """What a pipe gets instead."""


Value: TypeAlias = "Cell | str | int | None"


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column."""

    name: str
    right: bool = False
    whole: bool = False
    """Never wrapped: an id must be copied in one piece."""
    room: int = 0
    """Left out at terminals of fewer columns; in a pipe it is always there."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under heads."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]


def plain(table: Table) -> Iterator[str]:
    """The lines of a table for a pipe."""
    rows = [[column.name.upper() for column in table.columns]]
    rows += [[piped(value) or _NOTHING for value in row] for row in table.rows]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        ]
        yield _GAP.join(cells).rstrip()


def drawn(table: Table, width: int) -> RichTable:
    """The table for a terminal of this width."""
    from rich.table import Table as RichTable

    found = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    kept = [place for place, column in enumerate(table.columns) if column.room <= width]
    for column in (table.columns[place] for place in kept):
        found.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=column.whole,
            min_width=_ID if column.name == "id" else None,
            overflow="fold",
        )
    for row in table.rows:
        found.add_row(*(styled(row[place]) for place in kept))
    return found


def styled(value: Value) -> Text:
    """A value for a terminal."""
    from rich.text import Text

    cell = value if isinstance(value, Cell) else Cell(None if value is None else str(value))
    return Text(one_line(cell.text or ""), cell.style)


def piped(value: Value) -> str:
    """A value for a pipe; empty if there is none."""
    if isinstance(value, Cell):
        value = value.text if value.piped is None else value.piped
    return "" if value is None else one_line(str(value))
