"""Where sends go: routes, as a sender knows them.

Owns a copy of the routes, which is read anew when it is older than `STALE` seconds and something
is sent; so a change is seen by every sender within a second, and a program that sends nothing asks
nothing. It is read where the send itself is tried, and again: what keeps one from the database
keeps the other.

Inside the caller's own transaction the routes are read in that transaction, each time, and not
kept: it may be an old one, which does not see what others have changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.core.records import Submission
from holdfast.core.routing import NO_ROUTES, RouteBook
from holdfast.store.op import Op
from holdfast.store.verbs import routes

__all__ = ["STALE", "Routing"]

STALE: Final = 0.5

Attempt: TypeAlias = "Callable[[Callable[[], Op[Any]]], Any]"
"""Runs an operation of the store once."""


class _Copy(NamedTuple):
    book: RouteBook
    read_at: float


class Routing:
    """The routes as one process knows them."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Read them anew with the next send: this very process has changed them."""
        # Replaced as a whole: readers take no lock, and of two threads that read it anew at once
        # either may be the last.
        self._copy = _Copy(NO_ROUTES, float("-inf"))

    def route(self, submissions: Sequence[Submission], attempt: Attempt) -> Sequence[Submission]:
        """These, in the queues where the routes send them; `attempt` asks the store."""
        now = time.monotonic()
        copy = self._copy
        if now - copy.read_at > STALE:
            known = routes.ANY if copy.book is NO_ROUTES else copy.book.version
            changed: RouteBook | None = attempt(partial(routes.changes, known))
            copy = self._copy = _Copy(copy.book if changed is None else changed, now)
        return routes.along(copy.book, submissions)
