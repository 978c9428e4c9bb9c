"""`app.control.routes`: rules that send tasks to queues by their names.

Owns their arguments. A rule that is set here is followed by every sender within a second, and by
the steps of workflows at once; what was sent before stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from holdfast.client.access import Access
from holdfast.client.acting import Effect, recorded, who_acts
from holdfast.client.info import Listing
from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.moment import from_us
from holdfast.core.routing import read_pattern, read_queues
from holdfast.core.text import clean
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs import routes

__all__ = ["RouteControl", "RouteInfo"]

_LONGEST_PATTERN: Final = 10_000


@dataclass(frozen=True, slots=True)
class RouteInfo:
    """One rule."""

    pattern: str
    """The name of a task, or a pattern in which `*` stands for any characters."""
    queues: Mapping[str, int]
    """Where to; of several queues each gets its weight's share."""
    set_by: str | None
    updated_at: datetime


class RouteControl:
    """`app.control.routes`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def list(self) -> Listing[RouteInfo]:
        """The rules, by their patterns."""
        return self._access.run(_listing)

    async def alist(self) -> Listing[RouteInfo]:
        """The rules, by their patterns."""
        return await self._access.arun(_listing)

    def set(self, pattern: str, queues: str | Mapping[str, int], *, by: str | None = None) -> None:
        """Send the tasks of this name, or of names like it (`mail.*`), to a queue, or to several
        by weight. `options(queue=…)` comes before it; the task's own queue after it."""
        self._access.run(_setting(pattern, queues, by))
        self._access.routing.forget()

    async def aset(
        self, pattern: str, queues: str | Mapping[str, int], *, by: str | None = None
    ) -> None:
        """Send the tasks of this name, or of names like it, to a queue, or to several by weight."""
        await self._access.arun(_setting(pattern, queues, by))
        self._access.routing.forget()

    def delete(self, pattern: str) -> bool:
        """Remove a rule; False if there is none with this pattern."""
        gone = self._access.run(_deleting(pattern))
        self._access.routing.forget()
        return gone

    async def adelete(self, pattern: str) -> bool:
        """Remove a rule; False if there is none with this pattern."""
        gone = await self._access.arun(_deleting(pattern))
        self._access.routing.forget()
        return gone


@reads
def _listing() -> Steps[Listing[RouteInfo]]:
    unreadable: list[UnreadableRow] = []
    book = yield from routes.read(unreadable)
    found = [
        RouteInfo(route.pattern, route.queues, route.set_by, from_us(route.updated_at))
        for route in book.routes
    ]
    return Listing(found, unreadable)


def _setting(
    pattern: str, queues: str | Mapping[str, int], by: str | None
) -> Callable[[], Op[None]]:
    known, targets = read_pattern(pattern), read_queues(queues)
    who = who_acts(by)
    verb = partial(routes.set_route, known, targets, by=who)
    return recorded("set_route", verb, lambda _: Effect(1, f"route {known}", targets), by=who)


def _deleting(pattern: str) -> Callable[[], Op[bool]]:
    # Not only what can be set: a row that was written by hand can be removed, too.
    given: object = pattern
    if not isinstance(given, str) or clean(given, _LONGEST_PATTERN) != given:
        raise ConfigError(f"{pattern!r:.200} is no pattern of task names", option="pattern")
    verb = partial(routes.delete, pattern)
    return recorded("delete_route", verb, lambda done: Effect(int(done), f"route {pattern}"))
