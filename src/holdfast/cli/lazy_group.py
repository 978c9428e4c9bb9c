"""A command group whose commands are imported when they are called.

Owns the putting off, and how a command ends that is cut off from outside. `holdfast --help` lists
every command and imports none of them. So the one line each has in that list is written here, not
read from the command; a test holds the two together.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import click

INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""As a shell reports a program that SIGINT, or SIGPIPE, has ended."""
_UNWRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


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

    def invoke(self, ctx: click.Context) -> Any:
        try:
            # Databases and modules are looked for here.
            os.getcwd()  # noqa: PTH109
        except OSError as error:
            raise click.UsageError(
                f"the working directory cannot be used ({error.strerror}): change to another, or "
                "to this one anew if it was replaced"
            ) from None
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # What is left in the buffer must not be tried again when the process ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            ctx.exit(READER_GONE)
        except OSError as error:
            what = "the operating system refuses"
            if error.errno in _UNWRITTEN:
                what = "what was asked for may be done, but the answer cannot be written"
            raise click.ClickException(f"{what}: {error}") from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(self.aliases.get(cmd_name, cmd_name))
        command = None if entry is None else entry.load()
        if callable(ctx.obj):
            # Whoever started us wants to know that nothing more is imported.
            ctx.obj()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in self.entries.items()])
