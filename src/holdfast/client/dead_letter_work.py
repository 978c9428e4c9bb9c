"""Something done to all dead letters that a filter finds, page by page.

Owns the filter, the pages and the pace. Each page is a transaction of its own with its own record
in the audit: a million dead letters hold up nobody, and a program that is interrupted has done
whole pages. Those that die meanwhile are not touched, nor is any other task. The work is a
generator that asks the store one operation after the other, so it is written once for those who
wait and those who await.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

from holdfast.client.access import Access
from holdfast.client.acting import effect_on, recorded
from holdfast.client.one_task import ManyVerb, ResubmitOptions, resubmission
from holdfast.client.task_search import Filter, wanted_of
from holdfast.core.errors import ConfigError, HoldfastError, UniqueConflict, UpstreamEnded
from holdfast.core.moment import from_us, optional_us
from holdfast.core.options import checks
from holdfast.core.options.limit import Limit, rules
from holdfast.core.records import DeadLetterFilter, TaskFilter
from holdfast.store.op import Op, Steps, writes
from holdfast.store.verbs import dead_letters, timing

__all__ = [
    "AtOnce",
    "DeadFilter",
    "ResubmitAll",
    "ResubmitWhere",
    "Tell",
    "Treated",
    "adrive",
    "counted",
    "drive",
    "parts",
    "resubmitting",
    "shown",
    "successful",
    "treated",
    "wanted_dead",
]

_PAGE: Final = 200
"""How many are treated in one transaction."""
_PARTS: Final = 100
"""How many times to run one transaction gives out, if they are spread over time."""
_REASONS: Final = 100
_SECOND: Final = 1_000_000

T = TypeVar("T")
Work: TypeAlias = "Generator[Callable[[], Op[Any]], Any, T]"


class DeadFilter(Filter, total=False):
    """Which dead letters are meant: as for any list of tasks, where `text` may also be a part of
    the reason, in capitals or not."""

    version: int
    ended_from: datetime
    ended_until: datetime


@dataclass(frozen=True, slots=True)
class Treated:
    """What became of the dead letters that a filter found."""

    done: int = 0
    refused: int = 0
    total: int = 0
    """How many there were when it began."""
    reasons: Mapping[UUID, str] = field(default_factory=dict)
    """Why, for the first hundred that were refused."""
    until: datetime | None = None
    """When the last of them is to run, if they were resubmitted at a rate: with `run_at=` this
    time, what is left after an interruption follows them at the same rate."""


Tell: TypeAlias = "Callable[[Treated], object]"


class ResubmitAll(ResubmitOptions, total=False):
    """The keywords of `resubmit_all`, beside those of the filter."""

    rate: str | None
    """So many in a time, as `100/minute`: they are given times to run, one after the other, so it
    goes on at this rate when the program has ended."""
    progress: Callable[[Treated], object] | None
    """Called with each page."""


class ResubmitWhere(DeadFilter, ResubmitAll, total=False):
    """Which dead letters run again, and how."""


def drive(access: Access, work: Work[T]) -> T:
    """Do this work, and wait for each step."""
    try:
        asked = next(work)
        while True:
            try:
                answer = access.run(asked)
            except HoldfastError as error:
                asked = work.throw(error)
            else:
                asked = work.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def adrive(access: Access, work: Work[T]) -> T:
    """Do this work without blocking the event loop."""
    try:
        asked = next(work)
        while True:
            try:
                answer = await access.arun(asked)
            except HoldfastError as error:
                asked = work.throw(error)
            else:
                asked = work.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


def counted(wanted: DeadLetterFilter) -> Work[int]:
    """How many fit."""
    return sum(cause.number for cause in (yield from parts(wanted)))


def parts(wanted: DeadLetterFilter) -> Work[list[dead_letters.DeathCount]]:
    """How many of each cause and hour fit, part by part."""
    found: list[dead_letters.DeathCount] = []
    before: bytes | None = None
    while True:
        counts, before = yield partial(dead_letters.causes, wanted, before=before)
        found += counts
        if before is None:
            return found


class AtOnce:
    """Treats all of a page in the same way."""

    size = _PAGE
    last: datetime | None = None
    """The latest of the times that were given out."""

    def __init__(self, verb: ManyVerb) -> None:
        self._verb = verb

    def parts(self, ids: Sequence[bytes], now: int) -> Iterator[tuple[Sequence[bytes], ManyVerb]]:
        """Which of these are treated how; `now` is when it began."""
        yield ids, self._verb


class _AtRate(AtOnce):
    """Gives those that run again times to run, one after the other."""

    def __init__(self, every_us: float, run_at: int | None, options: ResubmitOptions) -> None:
        self._every_us = every_us
        self._run_at = run_at
        self._options = options
        self._given = 0
        a_second = max(1, int(_SECOND / every_us))
        self.size = min(_PAGE, _PARTS * a_second)

    def parts(self, ids: Sequence[bytes], now: int) -> Iterator[tuple[Sequence[bytes], ManyVerb]]:
        of_time: dict[int, list[bytes]] = {}
        for id in ids:
            behind = int(self._given * self._every_us)
            # Those of one second have one time: each time is a statement of its own.
            behind -= behind % _SECOND if self._every_us < _SECOND else 0
            of_time.setdefault(behind, []).append(id)
            self._given += 1
        for behind, some in of_time.items():
            self.last = at = from_us((self._run_at or now) + behind)
            options: ResubmitOptions = {**self._options, "run_at": at}
            yield some, resubmission(**options)


def treated(verb: str, wanted: DeadLetterFilter, how: AtOnce, tell: Tell | None) -> Work[Treated]:
    """Treat all that fit; `how` says in which way, `tell` is told of each page."""
    now = (yield partial(timing.next_due)).now
    # Those that die from now on were not meant.
    until = now + 1 if wanted.ended_until is None else min(now + 1, wanted.ended_until)
    wanted = replace(wanted, ended_until=until)
    so_far = Treated()
    if tell is not None:
        so_far = replace(so_far, total=(yield from counted(wanted)))
        tell(so_far)
    before: bytes | None = None
    while True:
        found = partial(dead_letters.find, wanted, before=before, limit=how.size)
        ids, before = yield found
        if ids:
            reasons = dict(so_far.reasons)
            done = yield from _tried(verb, list(how.parts(ids, now)), reasons)
            so_far = replace(
                so_far,
                done=so_far.done + done,
                refused=so_far.refused + len(ids) - done,
                reasons=dict(list(reasons.items())[:_REASONS]),
                until=how.last,
            )
            if tell is not None:
                tell(so_far)
        if before is None:
            total = max(so_far.total, so_far.done + so_far.refused)
            return replace(so_far, total=total)


def _tried(
    verb: str, parts: Sequence[tuple[Sequence[bytes], ManyVerb]], reasons: dict[UUID, str]
) -> Work[int]:
    """Treat these, and those together that can be; how many were."""
    try:
        done = yield recorded(verb, partial(_each, parts), lambda done: effect_on(successful(done)))
    except (UniqueConflict, UpstreamEnded) as error:
        # Nothing of them was written.
        first, second = _halves(parts)
        if not second:
            reasons[UUID(bytes=first[0][0][0])] = str(error)
            return 0
        one = yield from _tried(verb, first, reasons)
        return one + (yield from _tried(verb, second, reasons))
    left = "it is no dead letter now, its workflow does not let it go, or its row cannot be read"
    reasons |= {UUID(bytes=raw): left for raw, was_done in done.items() if not was_done}
    return len(successful(done))


def _halves(
    parts: Sequence[tuple[Sequence[bytes], ManyVerb]],
) -> tuple[Sequence[tuple[Sequence[bytes], ManyVerb]], Sequence[tuple[Sequence[bytes], ManyVerb]]]:
    if len(parts) > 1:
        middle = len(parts) // 2
        return parts[:middle], parts[middle:]
    ((ids, verb),) = parts
    middle = (len(ids) + 1) // 2
    return [(ids[:middle], verb)], [(ids[middle:], verb)] if ids[middle:] else []


@writes
def _each(parts: Sequence[tuple[Sequence[bytes], ManyVerb]]) -> Steps[dict[bytes, bool]]:
    done: dict[bytes, bool] = {}
    for ids, verb in parts:
        done |= yield from dead_letters.of_dead(ids, verb)
    return done


def successful(done: Mapping[bytes, bool]) -> list[bytes]:
    """Those to which it was done."""
    return [raw for raw, was_done in done.items() if was_done]


def resubmitting(where: ResubmitWhere) -> tuple[DeadLetterFilter, AtOnce, Tell | None]:
    """Which, how, and who is told."""
    options: dict[str, Any] = {
        name: value for name, value in where.items() if name in ResubmitOptions.__annotations__
    }
    rest: dict[str, Any] = {
        name: value
        for name, value in where.items()
        if name not in options and name not in ("rate", "progress")
    }
    wanted = wanted_dead(rest)  # type: ignore[arg-type]  # what it does not know, it refuses
    verb = resubmission(**options)
    rate = where.get("rate")
    how = AtOnce(verb)
    if rate is not None:
        ((every_us, _),) = rules([Limit(rate=rate)]).whole.rates
        run_at = optional_us(where.get("run_at"), option="run_at")
        how = _AtRate(every_us, run_at, options)  # type: ignore[arg-type]  # checked just now
    return wanted, how, where.get("progress")


def wanted_dead(where: DeadFilter) -> DeadLetterFilter:
    """The filter as the store takes it, checked."""
    unknown = where.keys() - DeadFilter.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(DeadFilter.__annotations__))
        raise ConfigError(f"dead letters are not chosen by {min(unknown)!r}: use {names}")
    plain: dict[str, Any] = {
        name: value for name, value in where.items() if name in Filter.__annotations__
    }
    known = wanted_of(plain)  # type: ignore[arg-type]  # what it does not know, it refuses
    version = where.get("version")
    return DeadLetterFilter(
        **{each.name: getattr(known, each.name) for each in fields(TaskFilter)},
        version=None if version is None else checks.at_least(1, version, "version"),
        ended_from=optional_us(where.get("ended_from"), option="ended_from"),
        ended_until=optional_us(where.get("ended_until"), option="ended_until"),
    )


def shown(where: Mapping[str, Any]) -> str:
    """The filter in words, for the record."""
    given = {name: where[name] for name in DeadFilter.__annotations__ if name in where}
    return ", ".join(f"{name}={value!s:.100}" for name, value in given.items()) or "all"
