"""Limits, from Python: `app.control.queues.limit`, `app.control.queues.fair`,
`app.control.tasks.limit`.

Owns their arguments. A limit that is set here holds from the next claim on, in the whole fleet,
and stays until it is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from holdfast.client.access import Access
from holdfast.client.acting import Effect, recorded, who_acts
from holdfast.core.limiting import queue_scope, task_scope
from holdfast.core.options import checks
from holdfast.core.options.limit import Limit, Limits, read
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs import limits

__all__ = ["LimitedQueues", "LimitedTasks"]


class LimitedQueues:
    """The limits of queues."""

    _access: Access

    def limit(self, queue: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a queue, at once and everywhere; None removes what was set."""
        self._access.run(_limiting_queue(queue, limit, by))

    async def alimit(self, queue: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a queue, at once and everywhere; None removes what was set."""
        await self._access.arun(_limiting_queue(queue, limit, by))

    def fair(self, queue: str, fair: bool = True) -> None:
        """Whether the concurrency keys of a queue take turns (they do), or its tasks go in strict
        order."""
        self._access.run(_ordering(queue, fair))

    async def afair(self, queue: str, fair: bool = True) -> None:
        """Whether the concurrency keys of a queue take turns (they do), or its tasks go in strict
        order."""
        await self._access.arun(_ordering(queue, fair))


class LimitedTasks:
    """The limits of tasks."""

    _access: Access

    def limit(self, name: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a task, at once and everywhere, instead of what its code says; None: as its code
        says."""
        self._access.run(_limiting_task(name, limit, by))

    async def alimit(self, name: str, limit: Limits | None, *, by: str | None = None) -> None:
        """Limit a task, at once and everywhere, instead of what its code says; None: as its code
        says."""
        await self._access.arun(_limiting_task(name, limit, by))

    def limits(self, name: str) -> Sequence[Limit]:
        """The limits of a task that hold: what was set here, or else what its code says."""
        return self._access.run(partial(_limits_of, task_scope(checks.task_name(name))))

    async def alimits(self, name: str) -> Sequence[Limit]:
        """The limits of a task that hold: what was set here, or else what its code says."""
        return await self._access.arun(partial(_limits_of, task_scope(checks.task_name(name))))


@reads
def _limits_of(scope: str) -> Steps[Sequence[Limit]]:
    return (yield from limits.book()).limits.get(scope, ())


def _limiting_queue(queue: str, limit: Limits | None, by: str | None) -> Callable[[], Op[None]]:
    name = checks.queue_name(queue)
    return _limiting(queue_scope(name), f"queue {name}", limit, by)


def _limiting_task(name: str, limit: Limits | None, by: str | None) -> Callable[[], Op[None]]:
    return _limiting(task_scope(checks.task_name(name)), f"task {name}", limit, by)


def _limiting(
    scope: str, subject: str, limit: Limits | None, by: str | None
) -> Callable[[], Op[None]]:
    given = read(limit)
    who = who_acts(by)
    choosing = partial(limits.choose, scope, given, by=who)
    detail = {"limits": [asdict(each) for each in given or ()]}
    return recorded("limit", choosing, lambda _: Effect(1, subject, detail), by=who)


def _ordering(queue: str, fair: bool) -> Callable[[], Op[None]]:
    name, turns = checks.queue_name(queue), checks.flag(fair, "fair")
    detail = {"fair": turns}
    return recorded(
        "fair",
        partial(limits.set_fair, name, turns),
        lambda _: Effect(1, f"queue {name}", detail),
    )
