"""Workers: who is there, and how each has been doing.

Owns registration and snapshots, for people to look at, and for whoever asks what the fleet
knows. Nothing here decides about tasks: whether a worker may finish something is between it
and its lease rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import IntEnum
from typing import Final, NamedTuple

from holdfast.core.errors import UnreadableRow
from holdfast.core.records import WorkerRecord, WorkerState
from holdfast.store import rows
from holdfast.store.op import At, Statement, Steps, Texts, alone, reads, writes


class WorkerOrder(IntEnum):
    """What an operator wants of a worker; a later number is stronger and contains the others."""

    DRAIN = 1
    """Claim nothing more, let everything that runs end, then stop."""
    STOP = 2
    """The same, but what has not ended after the grace is treated as its task says."""
    INTERRUPT = 3
    """The same without the grace."""


_COMMANDS: Final = {order: order.name.lower() for order in WorkerOrder}


class Registered(NamedTuple):
    """What a worker learns when it reports."""

    command: str | None
    """An order from an operator, for example to stop."""
    started_at: int


@alone
def register(
    worker_id: str,
    *,
    hostname: str,
    pid: int,
    version: str,
    lease_us: int,
    queues: str,
    known: str,
    settings: str,
    children: str | None = None,
) -> Steps[Registered]:
    """Say that a worker is there, or still there."""
    found = yield Statement(
        "register_worker",
        {
            "worker_id": worker_id,
            "hostname": hostname,
            "pid": pid,
            "version": version,
            "lease_us": lease_us,
            "queues": queues,
            "known": known,
            "settings": settings,
            "children": children,
        },
    )
    return Registered(*found[0])


@alone
def stop(worker_id: str) -> Steps[None]:
    """Say that a worker has stopped."""
    yield Statement("stop_worker", {"worker_id": worker_id})


@writes
def give_order(worker_ids: Sequence[str], order: WorkerOrder) -> Steps[dict[str, bool]]:
    """Order workers to stop, each in its own time; False for one that is not there any more."""
    answers: dict[str, bool] = {}
    # In one order, so that two operators do not wait for each other.
    for worker_id in sorted(set(worker_ids)):
        found = yield Statement(
            "order_worker", {"worker_id": worker_id, "command": _COMMANDS[order]}
        )
        answers[worker_id] = bool(found)
    return {worker_id: answers[worker_id] for worker_id in worker_ids}


@reads
def read_order(worker_id: str) -> Steps[WorkerOrder | None]:
    """What a worker is ordered to do."""
    found = yield Statement("worker_order", {"worker_id": worker_id})
    return WorkerOrder(found[0][0]) if found and found[0][0] else None


@reads
def list_workers(set_aside: list[UnreadableRow] | None = None) -> Steps[list[WorkerRecord]]:
    """Every worker that is remembered, the newest first.

    Those whose rows cannot be read are added to `set_aside`.
    """
    found = yield Statement("list_workers")
    return list(rows.readable(rows.worker, found, set_aside))


@alone
def snapshot(state: WorkerState) -> Steps[None]:
    """Add one point to a worker's time series."""
    values = asdict(state)
    del values["snapshot_at"]
    yield Statement("snapshot_worker", {**values, "worker_started_at": At(state.worker_started_at)})


@reads
def states(worker_id: str, *, since: int = 0, limit: int = 1000) -> Steps[list[WorkerState]]:
    """The snapshots of one worker, the newest first."""
    found = yield Statement(
        "worker_states", {"worker_id": worker_id, "since": At(since), "limit": limit}
    )
    return list(rows.readable(rows.worker_state, found))


@reads
def latest_states(worker_ids: Sequence[str]) -> Steps[dict[str, WorkerState]]:
    """The newest snapshot of each of these workers, of those that have one."""
    found = yield Statement("latest_states", {"worker_ids": Texts(worker_ids)})
    return {state.worker_id: state for state in rows.readable(rows.worker_state, found)}


class WorkerStep(NamedTuple):
    """What the snapshots of one step of time say together."""

    at: int
    processes: int
    running: float
    """On average."""
    most_running: int
    most_claimed: int
    memory_mb: float | None
    """The most."""
    cpu_percent: float | None
    """On average."""
    most_cpu_percent: float | None


@reads
def history(worker_id: str, *, start: int, until: int, step_us: int) -> Steps[list[WorkerStep]]:
    """How a worker was from `start` to `until`; a step without a snapshot is absent."""
    found = yield Statement(
        "worker_history",
        {"worker_id": worker_id, "start": At(start), "until": At(until), "step_us": step_us},
    )
    return [WorkerStep(*row) for row in found]
