"""The root of the `holdfast` command.

Owns the list of commands, and how a command ends that is cut off from outside. Each noun (`db`,
`tasks`, …) is a module of its own in `commands`, imported when it is called: `holdfast --help`
lists every command and imports none of them. So the one line each has in that list is written here,
not read from the command; a test holds the two together.
"""

from __future__ import annotations

import errno
import os
from importlib import import_module
from typing import Any, Final

import click

from holdfast import __version__

COMMANDS: Final = {
    "worker": "Run the tasks of the app MODULE:APP.",
    "tasks": "Look at tasks, send them, and steer them.",
    "queues": "See what waits; pause, resume and limit queues.",
    "workers": "See which workers there are; have them stop.",
    "routes": "Send tasks to queues by their names: list, set, delete.",
    "dead-letters": "Tasks that failed for good: list, causes, resubmit, delete.",
    "doctor": "Find what endangers tasks, or keeps them from running.",
    "top": "Watch queues, workers, running tasks and failures; steer them.",
    "web": "Serve the dashboard and the HTTP API.",
    "schedules": "See what fires when; add, pause, run, backfill, delete.",
    "workflows": "See where workflows stand; cancel, pause, resume and resubmit them.",
    "stats": "Rates, waits and run times of the last minutes.",
    "db": "See whether the database can be used; upgrade its tables.",
    "demo": "Watch a worker run tasks that end in every possible way.",
}
ALIASES: Final = {"dead": "dead-letters"}

INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""As a shell reports a program that SIGINT, or SIGPIPE, has ended."""
_UNWRITTEN: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class LazyGroup(click.Group):
    """A group that knows its commands by name only."""

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
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        full = ALIASES.get(cmd_name, cmd_name)
        if full not in COMMANDS:
            return None
        name = full.replace("-", "_")
        command = getattr(import_module(f"holdfast.cli.commands.{name}"), name)
        assert isinstance(command, click.Command)
        if callable(ctx.obj):
            # Whoever started us wants to know when nothing more is imported.
            ctx.obj()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group("holdfast", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="holdfast")
def main() -> None:
    """Holdfast: a durable task queue on SQLite or PostgreSQL."""
