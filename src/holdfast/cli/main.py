"""The root of the `holdfast` command.

Owns the list of commands and the version option; each noun (`db`, `tasks`, …) is a module
of its own beside this one, imported when it is called. It must never hold logic that Python
callers would want too.
"""

from __future__ import annotations

from typing import Final

import click

from holdfast import __version__
from holdfast.cli.lazy_group import Entry, LazyGroup

ENTRIES: Final = {
    "worker": Entry("holdfast.cli.commands.worker:worker", "Run the tasks of the app MODULE:APP."),
    "tasks": Entry(
        "holdfast.cli.commands.tasks:tasks", "Look at tasks, send them, and steer them."
    ),
    "queues": Entry(
        "holdfast.cli.commands.queues:queues", "See what waits; pause and resume queues."
    ),
    "workers": Entry("holdfast.cli.commands.workers:workers", "See which workers there are."),
    "dead-letters": Entry(
        "holdfast.cli.commands.dead_letters:dead_letters",
        "Tasks that failed for good: list, resubmit, delete.",
    ),
    "db": Entry(
        "holdfast.cli.commands.db:db", "See whether the database can be used; upgrade its tables."
    ),
    "demo": Entry(
        "holdfast.cli.commands.demo:demo",
        "Watch a worker run tasks that end in every possible way.",
    ),
}
ALIASES: Final = {"dead": "dead-letters"}


@click.group(
    "holdfast",
    cls=LazyGroup,
    entries=ENTRIES,
    aliases=ALIASES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="holdfast")
def main() -> None:
    """Holdfast: a durable task queue on SQLite or PostgreSQL."""
