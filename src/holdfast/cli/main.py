"""The root of the `holdfast` command.

Owns the command group and its version option; each noun (`db`, `tasks`, …) is a
module of its own beside this one. It must never hold logic that Python callers
would want too.
"""

from __future__ import annotations

import click

from holdfast import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="holdfast")
def main() -> None:
    """Holdfast: a durable task queue on SQLite or PostgreSQL."""
