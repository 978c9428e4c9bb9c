"""Where a command's answer goes: a terminal, a pipe, or a program that wants JSON.

Owns the choice between the three, and writing. What is said on standard output is the
answer; remarks about it (where the next page begins, how many were done) go to standard
error, so that a pipe carries only the answer.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.render import json_document
from holdfast.cli.render.table import Columns, Rows, Value, drawn, piped, plain, styled
from holdfast.core.text import one_line, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable


class Screen:
    """The way out of one command."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        """The command must call `document`, once, and nothing else that writes."""
        # There is no standard output if it was closed (`>&-`).
        self.is_terminal = not as_json and sys.stdout is not None and sys.stdout.isatty()
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A terminal that cannot show a character gets its escape, not an exception.
            sys.stdout.reconfigure(errors="backslashreplace")

    def document(self, content: Any) -> None:
        """The answer as one JSON document."""
        click.echo(json_document.dump(content))

    def table(self, columns: Columns, rows: Rows) -> None:
        """Rows under heads."""
        if self.is_terminal:
            self._console.print(drawn(columns, rows, self._console.width))
        else:
            for line in plain(columns, rows):
                click.echo(line)

    def row(self, cells: Sequence[Value]) -> None:
        """One line of values, of an answer that has no end: cut at a terminal, whole in a pipe."""
        if self.is_terminal:
            from rich.text import Text

            line = Text("  ").join(styled(cell) for cell in cells)
            line.truncate(self._console.width, overflow="ellipsis")
            self._console.print(line, no_wrap=True, crop=True)
        else:
            click.echo("  ".join(piped(cell) or "-" for cell in cells))

    def document_line(self, content: Any) -> None:
        """One document of an answer that has no end, on a line of its own."""
        click.echo(json_document.dump_line(content))

    def facts(self, facts: Sequence[tuple[str, Value]]) -> None:
        """Names and values, a line each; what has no value is left out."""
        known = [(name, value) for name, value in facts if piped(value)]
        if self.is_terminal:
            self._console.print(_grid(known))
            return
        width = max((len(name) for name, _ in known), default=0)
        for name, value in known:
            click.echo(f"{name.ljust(width)}  {piped(value)}")

    def heading(self, text: str) -> None:
        """The name of what follows."""
        click.echo("")
        if self.is_terminal:
            self._console.print(one_line(text), style="bold")
        else:
            click.echo(f"{one_line(text)}:")

    def text(self, text: str, indent: str = "") -> None:
        """Text of several lines, as it is except for what a terminal would obey."""
        click.echo("\n".join(indent + line for line in visible(text).rstrip("\n").split("\n")))

    def line(self, text: str) -> None:
        """One line of the answer."""
        click.echo(one_line(text))

    def remark(self, text: str) -> None:
        """One line about the answer."""
        click.echo(one_line(text), err=True)

    @cached_property
    def _console(self) -> Console:
        return console(markup=False)


def console(*, markup: bool = True) -> Console:
    """A terminal; with NO_COLOR it gets no style of any kind, bold included."""
    from rich.console import Console

    plain_only = bool(os.environ.get("NO_COLOR"))
    return Console(
        highlight=False,
        markup=markup,
        emoji=False,
        color_system=None if plain_only else "auto",
    )


def _grid(facts: Sequence[tuple[str, Value]]) -> RichTable:
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        grid.add_row(Text(name, "dim"), styled(value))
    return grid
