"""Counters over time, and how deep queues were.

Owns the way of a count. Each worker adds to rows of its own, of the current minute, so that
counting makes no two workers wait for each other (`add_tallies`). Once a minute is over, one worker
adds them up by minute, hour, day and for ever, and removes them (`fold`). A series is the sum of
both, so it is exact at any moment; counters for ever never go down, whatever is forgotten.

Sends are counted by a worker a few seconds later, from the newest ids: counting them in the sender
would cost every send a second write. A sender whose clock is off by more than the margin, a send
whose transaction takes longer than `SETTLE_US`, and one under an id of the caller's own making that
is not made of the time, are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.core.metrics import MOST_NAMES
from holdfast.core.records import QueueRecord
from holdfast.core.statistics import COUNTERS, Counts, Level
from holdfast.store import rows
from holdfast.store.op import At, Column, Rows, Statement, Steps, Table, alone, reads, writes
from holdfast.store.verbs.queues import list_queues
from holdfast.store.verbs.timing import next_due

SETTLE_US: Final = 3_000_000
"""How long a send may take until it is counted."""
FLEET: Final = ""
"""Stands for a worker where something was counted for all."""
DEPTH_CAP: Final = 100_000
"""Where the counting of a queue's tasks stops."""
_SENDS, _DEPTHS = "stats", "depths"
_MINUTE_US: Final = 60_000_000


class Tally(NamedTuple):
    """What one worker counted for one task of one queue; the names are those of `COUNTERS`.

    `wait_us` is the time from when each could have been claimed until it was given to a child,
    `run_us` the time that its code took.
    """

    worker_id: str
    queue_name: str
    task_name: str
    counts: Counts

    @classmethod
    def of(cls, worker_id: str, queue_name: str, task_name: str, **counts: int) -> Tally:
        """A tally of these counts."""
        return cls(worker_id, queue_name, task_name, counts)


_TALLY_COLUMNS: Final = {
    "worker_id": Column.TEXT,
    "queue_name": Column.TEXT,
    "task_name": Column.TEXT,
    **dict.fromkeys(COUNTERS, Column.BIGINT),
}


@alone
def add_tallies(tallies: Sequence[Tally]) -> Steps[None]:
    """Add to this minute's counters of a worker."""
    found = [
        (
            each.worker_id,
            each.queue_name,
            each.task_name,
            *(each.counts.get(n, 0) for n in COUNTERS),
        )
        for each in tallies
    ]
    yield Statement("count_stats", table=Table(_TALLY_COLUMNS, found))


class CountingTurn(NamedTuple):
    """The turn to count sends for all workers."""

    now: int
    counted_until: int | None
    """None: nobody has counted any yet."""


@alone
def take_turn(*, every_us: int) -> Steps[CountingTurn | None]:
    """Take the turn to count sends and to fold, if it is due."""
    found = yield Statement("take_turn", {"name": _SENDS, "every_us": every_us})
    if not found:
        return None
    value, now = found[0]
    return CountingTurn(now, _position(value))


class Sent(NamedTuple):
    """How many tasks of a name were sent to a queue in a minute."""

    minute: int
    queue_name: str
    task_name: str
    number: int


@reads
def sends(after: int, until: int, *, margin_us: int) -> Steps[list[Sent]]:
    """What was sent from behind `after` up to `until`, by the database's clock."""
    found = yield Statement(
        "count_sends",
        {
            "after": At(after),
            "until": At(until),
            "low": _first_id(after - margin_us),
            "high": _first_id(until + margin_us),
        },
    )
    return [Sent(*row) for row in found if len([*rows.texts(row[1:3])]) == 2]


@writes
def add_sends(counted: Sequence[Sent], *, after: int | None, until: int) -> Steps[bool]:
    """Add what was counted; False if another worker has counted it meanwhile."""
    before = None if after is None else str(after)
    ours = yield Statement("note_counted", {"name": _SENDS, "before": before, "value": str(until)})
    if ours and counted:
        found = [(each[0], FLEET, *each[1:]) for each in counted]
        yield Statement("add_sends", table=Table(_SENT_COLUMNS, found))
    return bool(ours)


_SENT_COLUMNS: Final = {
    "minute": Column.TIME,
    "worker_id": Column.TEXT,
    "queue_name": Column.TEXT,
    "task_name": Column.TEXT,
    "sent": Column.BIGINT,
}


@writes
def fold(before: int, *, most_names: int = MOST_NAMES) -> Steps[None]:
    """Add up the counters of all workers of the minutes before this time.

    For ever, only the first `most_names` pairs of queue and task are counted by name: a program
    that makes up names must not fill the store, nor what reads the counters.
    """
    yield Statement(
        "fold_stats",
        {"before": At(before // _MINUTE_US * _MINUTE_US), "most_names": most_names},
    )


class Depth(NamedTuple):
    """How many tasks are in a queue, by where they stand."""

    queue_name: str
    pending: int = 0
    scheduled: int = 0
    claimed: int = 0
    running: int = 0
    dead: int = 0
    oldest_us: int = 0
    """How long the oldest has been claimable."""


_DEPTH_COLUMNS: Final = {
    "queue_name": Column.TEXT,
    **dict.fromkeys(Depth._fields[1:], Column.BIGINT),
}


@reads
def depths(cap: int = DEPTH_CAP, listed: Sequence[QueueRecord] | None = None) -> Steps[list[Depth]]:
    """How deep each queue is now; counting stops at `cap`. `listed`: the queues, if known."""
    now = (yield from next_due()).now
    found: dict[str, dict[str, int]] = {}
    for queue in (yield from list_queues(cap)) if listed is None else listed:
        oldest = queue.oldest_enqueued_at
        found[queue.queue_name] = {
            "pending": queue.pending,
            "scheduled": queue.scheduled,
            "oldest_us": 0 if oldest is None else max(0, now - oldest),
        }
    for name, status, number in (yield Statement("in_flight")):
        for queue_name in rows.texts([name]):
            found.setdefault(queue_name, {})[status.lower()] = number
    for name, number in (yield Statement("dead_counts", {"cap": cap})):
        for queue_name in rows.texts([name]):
            found.setdefault(queue_name, {})["dead"] = number
    return [Depth(name, **numbers) for name, numbers in sorted(found.items())]


@alone
def take_depth_turn(*, every_us: int) -> Steps[bool]:
    """Take the turn to write down how deep queues are, if it is due."""
    return bool((yield Statement("take_turn", {"name": _DEPTHS, "every_us": every_us})))


@alone
def add_depths(found: Sequence[Depth]) -> Steps[None]:
    """Write down how deep queues are."""
    yield Statement("add_depths", table=Table(_DEPTH_COLUMNS, found))


class CountedStep(NamedTuple):
    """What was counted in one step of a series, of one queue and task if it was asked for."""

    at: int
    queue_name: str | None
    task_name: str | None
    counts: Mapping[str, int]


@reads
def series(
    level: Level,
    *,
    start: int,
    until: int,
    step_us: int,
    queue: str | None = None,
    task: str | None = None,
    by_queue: bool = False,
    by_task: bool = False,
) -> Steps[list[CountedStep]]:
    """The counters of all workers in a range, in steps; one without counts is absent."""
    found = yield Statement(
        "stats_series",
        {
            "level": level,
            "start": At(start),
            "until": At(until),
            "step_us": step_us,
            "queue_name": queue,
            "task_name": task,
            "by_queue": by_queue,
            "by_task": by_task,
        },
    )
    return _steps(found)


@reads
def totals(*, most_names: int = MOST_NAMES) -> Steps[list[CountedStep]]:
    """What was ever counted, of each queue and task; such a count never goes down."""
    return _steps((yield Statement("stats_totals", {"most_names": most_names})))


@reads
def depth_series(
    level: Level, *, start: int, until: int, step_us: int, queue: str | None = None
) -> Steps[list[tuple[int, Depth]]]:
    """How deep queues were from `start` to `until`: the most of each step."""
    found = yield Statement(
        "depth_series",
        {
            "level": level,
            "start": At(start),
            "until": At(until),
            "step_us": step_us,
            "queue_name": queue,
        },
    )
    return [(at, Depth(*numbers)) for at, *numbers in found]


def _steps(found: Rows) -> list[CountedStep]:
    return [
        CountedStep(at, name, of, dict(zip(COUNTERS, numbers, strict=True)))
        for at, name, of, *numbers in found
    ]


def _position(value: object) -> int | None:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 18 else None


def _first_id(at: int) -> bytes:
    """The lowest id that a sender can make at this time."""
    return max(0, at // 1000).to_bytes(6, "big") + bytes(10)
