"""`holdfast dead-letters`: the tasks that failed for good, until somebody decides.

The verbs are those of `holdfast tasks`, applied to dead letters only: an id of another task is
refused.
"""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli import bulk_action
from holdfast.cli.selection import Selection, TaskFilters, filters, selects, show_page
from holdfast.cli.session import CommandSession, operates


@click.group("dead-letters")
def dead_letters() -> None:
    """Tasks that failed for good: list, resubmit, delete."""


@dead_letters.command("list")
@filters(without={"dead"}, pages=True)
@operates()
def list_(session: CommandSession, where: TaskFilters, limit: int, after: str | None) -> None:
    """List dead letters, the newest first."""
    show_page(session, where, limit=limit, after=after, dead=True)


@dead_letters.command()
@selects(without={"dead"})
@bulk_action.resubmit_options
@operates()
def resubmit(session: CommandSession, selection: Selection, **given: Any) -> None:
    """Let dead letters run again."""
    found = selection.resolve(session, "resubmit", bulk_action.RESUBMITTABLE, dead=True)
    again = bulk_action.resubmission(session, **given)
    bulk_action.perform(session, bulk_action.of_dead_letters(again), found)


@dead_letters.command()
@selects(without={"dead"})
@operates()
def delete(session: CommandSession, selection: Selection) -> None:
    """Delete dead letters, with their attempts and logs."""
    found = selection.resolve(session, "delete", bulk_action.DELETABLE, dead=True)
    bulk_action.perform(session, bulk_action.of_dead_letters(bulk_action.delete), found)
