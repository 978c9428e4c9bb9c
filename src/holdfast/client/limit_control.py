"""Limits, from Python: `app.control.queues.limit`, `app.control.queues.fair`,
`app.control.tasks.limit`.

Owns their arguments. A limit that is set here holds from the next claim on, in the whole fleet,
and stays until it is removed.
"""

from __future__ import annotations

from functools import partial

from holdfast.client.access import Access
from holdfast.core.limiting import queue_scope, task_scope
from holdfast.core.options import checks
from holdfast.core.options.limit import Limits, read
from holdfast.store.verbs import limits

__all__ = ["LimitedQueues", "LimitedTasks"]


class LimitedQueues:
    """The limits of queues."""

    _access: Access

    def limit(self, queue: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a queue, at once and everywhere; None removes what was set."""
        scope = queue_scope(checks.queue_name(queue))
        self._access.run(partial(limits.choose, scope, read(limit), by=_who(by)))

    async def alimit(self, queue: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a queue, at once and everywhere; None removes what was set."""
        scope = queue_scope(checks.queue_name(queue))
        await self._access.arun(partial(limits.choose, scope, read(limit), by=_who(by)))

    def fair(self, queue: str, fair: bool = True) -> None:
        """Whether the concurrency keys of a queue take turns (they do), or its tasks go in strict
        order."""
        name, turns = checks.queue_name(queue), checks.flag(fair, "fair")
        self._access.run(partial(limits.set_fair, name, turns))

    async def afair(self, queue: str, fair: bool = True) -> None:
        """Whether the concurrency keys of a queue take turns (they do), or its tasks go in strict
        order."""
        name, turns = checks.queue_name(queue), checks.flag(fair, "fair")
        await self._access.arun(partial(limits.set_fair, name, turns))


class LimitedTasks:
    """The limits of tasks."""

    _access: Access

    def limit(self, name: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a task, at once and everywhere, instead of what its code says; None: as its code
        says."""
        scope = task_scope(checks.task_name(name))
        self._access.run(partial(limits.choose, scope, read(limit), by=_who(by)))

    async def alimit(self, name: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a task, at once and everywhere, instead of what its code says; None: as its code
        says."""
        scope = task_scope(checks.task_name(name))
        await self._access.arun(partial(limits.choose, scope, read(limit), by=_who(by)))


def _who(by: str | None) -> str | None:
    return None if by is None else checks.one_line(by, "by")
