"""A command group whose commands are imported when they are called.

Owns nothing but the putting off: `holdfast --help` lists every command and imports none of
them. So the one line each has in that list is written here, not read from the command; a
test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is, and what it does in one line."""

    target: str
    """`module:attribute`."""
    line: str

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self.target.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


class LazyGroup(click.Group):
    """A group that knows its commands by name only."""

    def __init__(
        self,
        *args: Any,
        entries: Mapping[str, Entry],
        aliases: Mapping[str, str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.entries = entries
        self.aliases = aliases

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(self.aliases.get(cmd_name, cmd_name))
        return None if entry is None else entry.load()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in self.entries.items()])
