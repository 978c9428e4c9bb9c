"""`holdfast dead-letters`: the tasks that failed for good, until somebody decides.

The verbs are those of `holdfast tasks`, applied to dead letters only: an id of another task is
refused.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from holdfast.cli import bulk_action
from holdfast.cli.render import times
from holdfast.cli.render.task_list import show_tasks
from holdfast.cli.selection import (
    Selection,
    Where,
    after,
    filters,
    limit,
    listed,
    selects,
    suggest_name,
)
from holdfast.cli.session import Session, operates


@click.group("dead-letters")
def dead_letters() -> None:
    """Tasks that failed for good: list, resubmit, delete."""


@dead_letters.command("list")
@filters(without={"dead"})
@limit
@after
@operates()
def list_(session: Session, where: Where, limit: int, after: str | None) -> None:
    """List dead letters, the newest first."""
    start = None if after is None else session.task_id(after)
    page = listed(session, replace(where, dead=True), limit=limit, after=start)
    place = session.place.described
    show_tasks(session.screen, page, session.now(), place=place, dead=True)
    if not page.tasks and page.next is None:
        suggest_name(session, where)


@dead_letters.command()
@selects(without={"dead"})
@click.option("--keep-retries", is_flag=True, help="Do not give the retries anew.")
@click.option("--fresh", is_flag=True, help="Forget the checkpoints.")
@times.delay
@operates()
def resubmit(
    session: Session,
    selection: Selection,
    keep_retries: bool,
    fresh: bool,
    delay: times.Given | None,
) -> None:
    """Let dead letters run again."""
    found = selection.resolve(session, "resubmit", bulk_action.RESUBMITTABLE, dead=True)
    at = None if delay is None else times.after(delay, session.now())
    apply = partial(bulk_action.resubmit, keep_retries=keep_retries, fresh=fresh, run_at=at)
    bulk_action.perform(session, bulk_action.of_dead_letters(apply), found)


@dead_letters.command()
@selects(without={"dead"})
@operates()
def delete(session: Session, selection: Selection) -> None:
    """Delete dead letters, with their attempts and logs."""
    found = selection.resolve(session, "delete", bulk_action.DELETABLE, dead=True)
    bulk_action.perform(session, bulk_action.of_dead_letters(bulk_action.delete), found)
