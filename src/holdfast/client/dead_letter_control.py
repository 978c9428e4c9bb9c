"""`app.control.dead_letters`: the tasks that failed for good, until somebody decides.

Owns what is asked about them, and the verbs by id; what is done to all that a filter finds is
`dead_letter_work`. No verb here touches any other task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, TypeAlias, Unpack
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.acting import choosing, effect_on, recorded
from holdfast.client.dead_letter_work import (
    AtOnce,
    DeadFilter,
    ResubmitWhere,
    Tell,
    Treated,
    adrive,
    counted,
    drive,
    parts,
    resubmitting,
    shown,
    successful,
    treated,
    wanted_dead,
)
from holdfast.client.one_task import ManyVerb, ResubmitOptions, resubmission
from holdfast.client.task_questions import TaskId, raw_ids
from holdfast.client.task_search import TaskPage, page_of
from holdfast.core.errors import ConfigError
from holdfast.core.identity import as_bytes
from holdfast.core.moment import from_us
from holdfast.core.options import checks
from holdfast.store.op import Op
from holdfast.store.verbs import dead_letters, inspect

__all__ = [
    "DeadCause",
    "DeadCount",
    "DeadFilter",
    "DeadLetterControl",
    "DeadOverview",
    "Treated",
]


@dataclass(frozen=True, slots=True)
class DeadCause:
    """How many died in one way."""

    error_code: str | None
    name: str
    version: int
    queue: str
    count: int
    first_at: datetime
    last_at: datetime
    exception: str | None = None
    """The class of the exception, where no error code stands for it."""


@dataclass(frozen=True, slots=True)
class DeadCount:
    """How many died in one stretch of time."""

    at: datetime
    """When it begins."""
    count: int
    by_code: Mapping[str | None, int]


@dataclass(frozen=True, slots=True)
class DeadOverview:
    """Of what the newest dead letters died, and when: some ten thousand, found by one look."""

    causes: Sequence[DeadCause]
    """The most frequent first."""
    by_hour: Mapping[DeadCause, Sequence[DeadCount]]
    """How many of each cause died in each hour, in order; those without are left out."""
    is_all: bool
    """Whether there are no older ones."""


class DeadLetterControl:
    """`app.control.dead_letters`. A verb leaves any other task as it is."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def list(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[DeadFilter]
    ) -> TaskPage:
        """One page of the dead letters that fit, the newest first."""
        return page_of(self._access.run(_listing(before, limit, where)))

    async def alist(
        self, *, before: UUID | str | None = None, limit: int = 50, **where: Unpack[DeadFilter]
    ) -> TaskPage:
        """One page of the dead letters that fit, the newest first."""
        return page_of(await self._access.arun(_listing(before, limit, where)))

    def count(self, **where: Unpack[DeadFilter]) -> int:
        """How many fit."""
        return drive(self._access, counted(wanted_dead(where)))

    async def acount(self, **where: Unpack[DeadFilter]) -> int:
        """How many fit."""
        return await adrive(self._access, counted(wanted_dead(where)))

    def causes(self, **where: Unpack[DeadFilter]) -> Sequence[DeadCause]:
        """How many of those that fit died of what: the most frequent first."""
        return _by_cause(drive(self._access, parts(wanted_dead(where))))

    async def acauses(self, **where: Unpack[DeadFilter]) -> Sequence[DeadCause]:
        """How many of those that fit died of what: the most frequent first."""
        return _by_cause(await adrive(self._access, parts(wanted_dead(where))))

    def over_time(
        self, step: Literal["hour", "day"] = "hour", **where: Unpack[DeadFilter]
    ) -> Sequence[DeadCount]:
        """How many of those that fit died in each hour or day, in order; those without are left
        out."""
        length = _step(step)
        return _by_time(drive(self._access, parts(wanted_dead(where))), length)

    async def aover_time(
        self, step: Literal["hour", "day"] = "hour", **where: Unpack[DeadFilter]
    ) -> Sequence[DeadCount]:
        """How many of those that fit died in each hour or day, in order; those without are left
        out."""
        length = _step(step)
        return _by_time(await adrive(self._access, parts(wanted_dead(where))), length)

    def overview(self, **where: Unpack[DeadFilter]) -> DeadOverview:
        """Of what the newest of those that fit died, and when; costs the same however many there
        are."""
        wanted = wanted_dead(where)
        return _overview(self._access.run(partial(dead_letters.causes, wanted)))

    async def aoverview(self, **where: Unpack[DeadFilter]) -> DeadOverview:
        """Of what the newest of those that fit died, and when; costs the same however many there
        are."""
        wanted = wanted_dead(where)
        return _overview(await self._access.arun(partial(dead_letters.causes, wanted)))

    def resubmit(self, *ids: TaskId, **options: Unpack[ResubmitOptions]) -> dict[UUID, bool]:
        """Let dead letters run again; False for each that is none, or does not exist."""
        return _by_uuid(self._access.run(_of("resubmit", raw_ids(ids), resubmission(**options))))

    async def aresubmit(self, *ids: TaskId, **options: Unpack[ResubmitOptions]) -> dict[UUID, bool]:
        """Let dead letters run again; False for each that is none, or does not exist."""
        verb = resubmission(**options)
        return _by_uuid(await self._access.arun(_of("resubmit", raw_ids(ids), verb)))

    def resubmit_all(self, **where: Unpack[ResubmitWhere]) -> Treated:
        """Let all that fit run again, at once or at a rate; without a filter, all there are."""
        wanted, how, tell = resubmitting(where)
        with choosing(shown(where)):
            return drive(self._access, treated("resubmit", wanted, how, tell))

    async def aresubmit_all(self, **where: Unpack[ResubmitWhere]) -> Treated:
        """Let all that fit run again, at once or at a rate; without a filter, all there are."""
        wanted, how, tell = resubmitting(where)
        with choosing(shown(where)):
            return await adrive(self._access, treated("resubmit", wanted, how, tell))

    def delete(self, *ids: TaskId) -> dict[UUID, bool]:
        """Remove dead letters; False for each that is none, or does not exist.

        A step of a workflow stays with that, and is listed no more.
        """
        return _by_uuid(self._access.run(_of("delete", raw_ids(ids), dead_letters.delete)))

    async def adelete(self, *ids: TaskId) -> dict[UUID, bool]:
        """Remove dead letters; False for each that is none, or does not exist.

        A step of a workflow stays with that, and is listed no more.
        """
        return _by_uuid(await self._access.arun(_of("delete", raw_ids(ids), dead_letters.delete)))

    def delete_all(self, *, progress: Tell | None = None, **where: Unpack[DeadFilter]) -> Treated:
        """Remove all that fit, with their attempts and logs; without a filter, all there are."""
        wanted = wanted_dead(where)
        with choosing(shown(where)):
            return drive(
                self._access, treated("delete", wanted, AtOnce(dead_letters.delete), progress)
            )

    async def adelete_all(
        self, *, progress: Tell | None = None, **where: Unpack[DeadFilter]
    ) -> Treated:
        """Remove all that fit, with their attempts and logs; without a filter, all there are."""
        wanted = wanted_dead(where)
        with choosing(shown(where)):
            return await adrive(
                self._access, treated("delete", wanted, AtOnce(dead_letters.delete), progress)
            )


def _of(verb: str, ids: Sequence[bytes], apply: ManyVerb) -> Callable[[], Op[dict[bytes, bool]]]:
    made = partial(dead_letters.of_dead, ids, apply)
    return recorded(verb, made, lambda done: effect_on(successful(done)))


def _by_uuid(answers: dict[bytes, bool]) -> dict[UUID, bool]:
    return {UUID(bytes=raw): answer for raw, answer in answers.items()}


def _listing(
    before: UUID | str | None, limit: int, where: DeadFilter
) -> Callable[[], Op[inspect.Page]]:
    start = None if before is None else as_bytes(before)
    size = checks.at_least(1, limit, "limit")
    return partial(dead_letters.list_dead, wanted_dead(where), before=start, limit=size)


def _overview(found: dead_letters.Causes) -> DeadOverview:
    parts: dict[_Way, list[dead_letters.DeathCount]] = {}
    for part in found.counts:
        parts.setdefault(_way(part), []).append(part)
    hour = _step("hour")
    causes = {way: _cause(some) for way, some in parts.items()}
    hours = {cause: _by_time(parts[way], hour) for way, cause in causes.items()}
    return DeadOverview(_frequent(causes.values()), hours, found.next is None)


_Way: TypeAlias = "tuple[str | None, str | None, str, int, str]"


def _way(part: dead_letters.DeathCount) -> _Way:
    return part.error_code, part.exception, part.task_name, part.version, part.queue_name


def _by_cause(found: Sequence[dead_letters.DeathCount]) -> list[DeadCause]:
    parts: dict[_Way, list[dead_letters.DeathCount]] = {}
    for part in found:
        parts.setdefault(_way(part), []).append(part)
    return _frequent(map(_cause, parts.values()))


def _cause(parts: Sequence[dead_letters.DeathCount]) -> DeadCause:
    """What counts of the same way say together."""
    one = parts[0]
    return DeadCause(
        one.error_code,
        one.task_name,
        one.version,
        one.queue_name,
        sum(part.number for part in parts),
        from_us(min(part.first_at for part in parts)),
        from_us(max(part.last_at for part in parts)),
        one.exception,
    )


def _frequent(causes: Iterable[DeadCause]) -> list[DeadCause]:
    return sorted(causes, key=lambda cause: (-cause.count, cause.name, cause.queue))


def _by_time(found: Sequence[dead_letters.DeathCount], length: timedelta) -> list[DeadCount]:
    sums: dict[int, dict[str | None, int]] = {}
    us = length // timedelta(microseconds=1)
    for part in found:
        codes = sums.setdefault(part.hour - part.hour % us, {})
        codes[part.error_code] = codes.get(part.error_code, 0) + part.number
    return [
        DeadCount(from_us(at), sum(codes.values()), codes) for at, codes in sorted(sums.items())
    ]


def _step(step: str) -> timedelta:
    known = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
    if step not in known:
        raise ConfigError(f"step={step!r:.100} is unknown: use hour or day", option="step")
    return known[step]
