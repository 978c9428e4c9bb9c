"""`app.control.workers`: which workers there are, how each is doing, and orders to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

from holdfast.client.access import Access
from holdfast.client.acting import Effect, recorded
from holdfast.client.info import Listing
from holdfast.client.worker_history import HistoryOptions, WorkerHistory, history
from holdfast.core.errors import UnreadableRow
from holdfast.core.moment import Span, from_us, span_us
from holdfast.core.options import checks
from holdfast.core.payload.codec import from_json
from holdfast.core.records import WorkerRecord, WorkerState
from holdfast.store.op import Op, Steps, reads
from holdfast.store.verbs.diagnosis import expired_leases
from holdfast.store.verbs.timing import next_due
from holdfast.store.verbs.workers import (
    WorkerOrder,
    give_order,
    latest_states,
    list_workers,
    states,
)

__all__ = ["ChildUsage", "OverdueLeases", "WorkerControl", "WorkerInfo", "WorkerSnapshot"]

State: TypeAlias = Literal["alive", "silent", "stopped"]


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """What a worker said of itself, some time ago."""

    at: datetime
    processes: int
    tasks_running: int
    tasks_claimed: int
    memory_usage_mb: float | None
    cpu_percent: float | None


@dataclass(frozen=True, slots=True)
class ChildUsage:
    """What one child of a worker used when the worker was last seen."""

    name: str
    pid: int
    memory_mb: float
    cpu_percent: float | None
    """Of one core, since the worker was seen before that; None where it cannot be told."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """One worker, as it was when it was read."""

    id: str
    state: State
    """`silent`: it has not said that it stops, and its lease has passed since it was last seen."""
    hostname: str
    pid: int
    version: str
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    lease: float
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    """What it can run: `name@version`."""
    settings: dict[str, Any]
    command: str | None
    """An order it has not carried out yet: `drain`, `stop` or `interrupt`."""
    latest: WorkerSnapshot | None
    """Its last snapshot; one is made every `snapshot_interval` seconds."""
    children: tuple[ChildUsage, ...] = ()
    """As of `seen_at`."""


@dataclass(frozen=True, slots=True)
class OverdueLeases:
    """Leases of one worker that have ended, and whose tasks nobody has taken over."""

    worker: str
    count: int
    since: datetime
    """When the first of them ended."""


class WorkerControl:
    """`app.control.workers`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def list(self, *, stopped: bool = False) -> Listing[WorkerInfo]:
        """The workers, the newest first; with `stopped`, also those that have stopped."""
        return self._access.run(partial(_workers, stopped))

    async def alist(self, *, stopped: bool = False) -> Listing[WorkerInfo]:
        """The workers, the newest first; with `stopped`, also those that have stopped."""
        return await self._access.arun(partial(_workers, stopped))

    def states(self, worker: str, *, limit: int = 100) -> Sequence[WorkerSnapshot]:
        """What a worker said of itself, the newest first."""
        return [_snapshot(each) for each in self._access.run(_history(worker, limit))]

    async def astates(self, worker: str, *, limit: int = 100) -> Sequence[WorkerSnapshot]:
        """What a worker said of itself, the newest first."""
        return [_snapshot(each) for each in await self._access.arun(_history(worker, limit))]

    def history(self, worker: str, **options: Unpack[HistoryOptions]) -> WorkerHistory:
        """How a worker was over time, in steps: for charts."""
        return self._access.run(history(worker, options))

    async def ahistory(self, worker: str, **options: Unpack[HistoryOptions]) -> WorkerHistory:
        """How a worker was over time, in steps: for charts."""
        return await self._access.arun(history(worker, options))

    def overdue(self, *, after: Span = 15) -> Sequence[OverdueLeases]:
        """Leases that ended so long ago and are still there, by worker: a second after its end
        any worker should have recovered what was in it."""
        return self._access.run(_overdue(after))

    async def aoverdue(self, *, after: Span = 15) -> Sequence[OverdueLeases]:
        """Leases that ended so long ago and are still there, by worker: a second after its end
        any worker should have recovered what was in it."""
        return await self._access.arun(_overdue(after))

    def stop(self, *workers: str, interrupt: bool = False) -> dict[str, bool]:
        """Have workers stop, as SIGTERM does; True for each that is there to hear it.

        They claim nothing more at once, and what runs has their `grace` to end. With `interrupt`
        it has none. A worker reads this within some two seconds.
        """
        return self._access.run(_ordering(workers, _order(interrupt=interrupt)))

    async def astop(self, *workers: str, interrupt: bool = False) -> dict[str, bool]:
        """Have workers stop, as SIGTERM does; True for each that is there to hear it."""
        return await self._access.arun(_ordering(workers, _order(interrupt=interrupt)))

    def drain(self, *workers: str) -> dict[str, bool]:
        """Have workers claim nothing more, end what they run, however long it takes, and stop;
        True for each that is there to hear it."""
        return self._access.run(_ordering(workers, WorkerOrder.DRAIN))

    async def adrain(self, *workers: str) -> dict[str, bool]:
        """Have workers claim nothing more, end what they run, however long it takes, and stop."""
        return await self._access.arun(_ordering(workers, WorkerOrder.DRAIN))


def _overdue(after: Span) -> Callable[[], Op[Sequence[OverdueLeases]]]:
    after_us = span_us(after, option="after")

    @reads
    def overdue() -> Steps[Sequence[OverdueLeases]]:
        now = (yield from next_due()).now
        found = yield from expired_leases(before=now - after_us)
        return [OverdueLeases(worker, number, from_us(since)) for worker, number, since in found]

    return overdue


def _history(worker: str, limit: int) -> Callable[[], Op[list[WorkerState]]]:
    name = checks.stored_text(worker, "worker")
    return partial(states, name, limit=checks.at_least(1, limit, "limit"))


def _order(*, interrupt: bool) -> WorkerOrder:
    return WorkerOrder.INTERRUPT if interrupt else WorkerOrder.STOP


def _ordering(workers: Sequence[str], order: WorkerOrder) -> Callable[[], Op[dict[str, bool]]]:
    for worker in workers:
        checks.stored_text(worker, "worker")
    return recorded(
        order.name.lower(),
        partial(give_order, workers, order),
        lambda told: _effect([worker for worker, heard in told.items() if heard]),
    )


def _effect(workers: Sequence[str]) -> Effect:
    if len(workers) == 1:
        return Effect(1, f"worker {workers[0]}")
    return Effect(len(workers), f"{len(workers):,} workers", {"workers": workers})


@reads
def _workers(stopped: bool) -> Steps[Listing[WorkerInfo]]:
    now = (yield from next_due()).now
    unreadable: list[UnreadableRow] = []
    records = yield from list_workers(unreadable)
    wanted = [record for record in records if stopped or record.stopped_at is None]
    latest = yield from latest_states([record.worker_id for record in wanted])
    found = [_info(record, latest.get(record.worker_id), now) for record in wanted]
    return Listing(found, unreadable)


def _info(record: WorkerRecord, latest: WorkerState | None, now: int) -> WorkerInfo:
    return WorkerInfo(
        id=record.worker_id,
        state=_state(record, now),
        hostname=record.hostname,
        pid=record.pid,
        version=record.version,
        started_at=from_us(record.started_at),
        seen_at=from_us(record.seen_at),
        stopped_at=None if record.stopped_at is None else from_us(record.stopped_at),
        lease=record.lease_us / 1_000_000,
        queues=tuple(from_json(record.queues)),
        tasks=tuple(from_json(record.known)),
        settings=from_json(record.settings),
        command=record.command,
        latest=None if latest is None else _snapshot(latest),
        children=tuple(ChildUsage(**each) for each in from_json(record.children or "[]")),
    )


def _state(record: WorkerRecord, now: int) -> State:
    if record.stopped_at is not None:
        return "stopped"
    return "alive" if record.is_alive(now) else "silent"


def _snapshot(state: WorkerState) -> WorkerSnapshot:
    return WorkerSnapshot(
        at=from_us(state.snapshot_at),
        processes=state.processes,
        tasks_running=state.tasks_running,
        tasks_claimed=state.tasks_claimed,
        memory_usage_mb=state.memory_usage_mb,
        cpu_percent=state.cpu_percent,
    )
