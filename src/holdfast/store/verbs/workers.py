"""Workers: who is there, and how each has been doing.

Owns registration and snapshots, for people to look at, and for whoever asks what the fleet
knows. Nothing here decides about tasks: whether a worker may finish something is between it
and its lease rows.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import NamedTuple

from holdfast.core.errors import UnreadableRow
from holdfast.core.records import WorkerRecord, WorkerState
from holdfast.store import rows
from holdfast.store.op import At, Statement, Steps, alone, reads


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
        },
    )
    return Registered(*found[0])


@alone
def stop(worker_id: str) -> Steps[None]:
    """Say that a worker has stopped."""
    yield Statement("stop_worker", {"worker_id": worker_id})


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
