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
_LEAST: Final = 12


@dataclass(frozen=True, slots=True)
class Cell:
    """One value, where a terminal gets more than its text."""

    text: str | None
    style: str = ""
    piped: str | None = None
    """What a pipe gets instead."""


Value: TypeAlias = "Cell | str | int | None"


@dataclass(frozen=True, slots=True)
class TextColumn:
    """The head of a column."""

    name: str
    right: bool = False
    whole: bool = False
    """Never wrapped: an id must be copied in one piece."""
    room: int = 0
    """Left out at terminals of fewer columns; in a pipe it is always there."""
    most: int | None = None
    """Folded at a terminal if it is wider than that."""
    cut: bool = False
    """One line at a terminal, in what room the others leave, and cut if that is too little."""


Columns: TypeAlias = Sequence[TextColumn]
Rows: TypeAlias = Sequence[Sequence[Value]]


def plain(columns: Columns, rows: Rows) -> Iterator[str]:
    """The lines of a table for a pipe."""
    lines = [[column.name.upper() for column in columns]]
    lines += [[piped(value) or _NOTHING for value in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        yield _GAP.join(cells).rstrip()


def drawn(columns: Columns, rows: Rows, width: int) -> RichTable:
    """The table for a terminal of this width."""
    from rich.table import Table as RichTable

    found = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    kept = [place for place, column in enumerate(columns) if column.room <= width]
    texts = [[styled(row[place]) for place in kept] for row in rows]
    columns = [columns[place] for place in kept]
    needs = [
        max(len(column.name), *(row[place].cell_len for row in texts), 0)
        for place, column in enumerate(columns)
    ]
    needs = [min(need, c.most or need) for need, c in zip(needs, columns, strict=True)]
    taken = sum(n + len(_GAP) for n, c in zip(needs, columns, strict=True) if not c.cut)
    # A letter or two of a text tell nothing, and the other columns need the room.
    shown = [p for p, c in enumerate(columns) if not c.cut or width - taken >= _LEAST // 2]
    for place in shown:
        column, need = columns[place], needs[place]
        found.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=column.whole or column.cut,
            min_width=need if column.whole else None,
            max_width=column.most,
            width=min(need, max(_LEAST, width - taken)) if column.cut else None,
            overflow="ellipsis" if column.cut else "fold",
        )
    for cells in texts:
        found.add_row(*(cells[place] for place in shown))
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
