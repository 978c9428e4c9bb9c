"""routes: rules that choose the queue of a task by its name.

Owns their reading and changing, and how they are applied to tasks that are written in the same
transaction (the steps of workflows, the ticks of schedules). Senders keep a copy
(`client.routing`): all rules have one version, and who names the latest is told only that
it still is. A rule that cannot be read sends nothing anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.core.errors import ConfigError, PayloadError, UnreadableRow
from holdfast.core.records import Submission
from holdfast.core.routing import Route, RouteBook, decode, encode, read_pattern
from holdfast.store import rows
from holdfast.store.op import Row, Statement, Steps, reads, writes

__all__ = ["ANY", "along", "changes", "delete", "read", "routed", "set_route"]

ANY: Final = "?"
"""A version that no rules have."""


@reads
def read(set_aside: list[UnreadableRow] | None = None) -> Steps[RouteBook]:
    """Every rule."""
    return (yield from _book(set_aside))


@reads
def changes(known: str | None) -> Steps[RouteBook | None]:
    """Every rule, or None if `known` is still their version."""
    asked = known or ""
    book = yield from _book(None, asked)
    return None if (book.version or "") == asked else book


def _book(set_aside: list[UnreadableRow] | None = None, known: str = ANY) -> Steps[RouteBook]:
    found = yield Statement("read_routes", {"known": known})
    version = next((row[1] for row in found if row[0] is None), None)
    rules = [row for row in found if row[0] is not None]
    routes = rows.readable(_route, rules, set_aside)
    return RouteBook(rows.optional_text(version), routes)


def _route(row: Row) -> Route:
    rows.check(Route._fields, row, "holdfast_routes")
    pattern, queues, set_by, updated_at = row
    try:
        read_pattern(pattern)
    except ConfigError:
        raise UnreadableRow(
            "holdfast_routes", rows.named(pattern), "pattern", "is no pattern of task names"
        ) from None
    try:
        known = decode(queues)
    except PayloadError as error:
        raise UnreadableRow("holdfast_routes", pattern, "queues", str(error)) from error
    return Route(pattern, known, set_by, updated_at)


@writes
def set_route(pattern: str, queues: Mapping[str, int], *, by: str | None = None) -> Steps[None]:
    """Set a rule, in place of the one with the same pattern."""
    yield Statement("renew_routes", {"version": _version()})
    yield Statement("set_route", {"pattern": pattern, "queues": encode(queues), "set_by": by})


@writes
def delete(pattern: str) -> Steps[bool]:
    """Remove a rule; False if there is none with this pattern."""
    yield Statement("renew_routes", {"version": _version()})
    return bool((yield Statement("delete_route", {"pattern": pattern})))


def _version() -> str:
    return os.urandom(8).hex()


def _by_routes(book: RouteBook, submission: Submission) -> Submission:
    """A submission, in the queue where the rules send it."""
    route = book.route_of(submission.task_name) if submission.is_routable else None
    if route is None:
        return submission
    return submission._replace(queue_name=route.draw(submission.id))


def along(book: RouteBook, submissions: Sequence[Submission]) -> Sequence[Submission]:
    """Submissions in the queues where these rules send them."""
    return [_by_routes(book, each) for each in submissions] if book else submissions


def routed(submissions: Sequence[Submission]) -> Steps[Sequence[Submission]]:
    """Submissions in the queues where the rules of this moment send them; read in the same
    transaction in which they are written."""
    if not any(each.is_routable for each in submissions):
        return submissions
    return along((yield from _book()), submissions)
