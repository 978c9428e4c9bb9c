"""Schedules for tests of the store: definitions, and workers that declare them."""

from __future__ import annotations

from typing import Unpack

from holdfast.core.payload.codec import to_json
from holdfast.core.schedules.definition import (
    ScheduledCall,
    ScheduleDefinition,
    ScheduledWorkflow,
    ScheduleOptions,
    define,
)
from holdfast.core.schedules.timing import When
from holdfast.store.verbs import workers
from tests.support.stores import Lab
from tests.support.verbs import QUEUE, TASK


def call(*, kwargs: str = "{}", unique: str | None = None, workflow: bool = False) -> ScheduledCall:
    return ScheduledCall(
        TASK,
        1,
        QUEUE,
        50,
        "[]",
        kwargs,
        "sha",
        unique_key=unique,
        unique_slot=unique,
        workflow=ScheduledWorkflow("t", digest="d") if workflow else None,
    )


def schedule(
    when: When = "* * * * *",
    name: str = "s",
    sends: ScheduledCall | None = None,
    **options: Unpack[ScheduleOptions],
) -> ScheduleDefinition:
    return define(name, when, sends or call(), options)


def register(lab: Lab, worker: str, lease_us: int = 30_000_000) -> None:
    """A worker says that it is there."""
    lab.run(
        workers.register(
            worker,
            hostname="h",
            pid=1,
            version="1",
            lease_us=lease_us,
            queues=to_json([QUEUE]),
            known="[]",
            settings="{}",
        )
    )
