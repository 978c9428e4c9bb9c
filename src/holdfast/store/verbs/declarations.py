"""What code declares: schedules that come with a deploy, change with it, and stop with it.

Owns the meeting of two versions of the code. A definition in force yields to one that was never
seen before, which is a deploy; and to one that is known only when no live worker declares it any
more, which is a step back. So two versions that run side by side do not take turns.

A schedule that no live worker declares has stopped. It is not fired meanwhile, and if it comes back
within ten minutes, as after a restart, it goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from holdfast.core.errors import UnreadableRow
from holdfast.core.payload.codec import to_json
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.store import rows, schedule_rows
from holdfast.store.op import Statement, Steps, alone, reads, writes
from holdfast.store.verbs import schedules
from holdfast.store.verbs.live_declarations import live_declarations

RESTART_US = 600_000_000
"""One that was stopped for longer than this comes back as a new one does."""


_DECLARED = 11
"""Where a raw row of a schedule says whether code declares it."""


class Declared(Enum):
    """What came of a declaration."""

    NEW = "new"
    SAME = "same"
    CHANGED = "changed"
    RETURNED = "returned"
    YIELDED = "yielded"
    """Another version of the code has it, and is live."""
    TAKEN = "taken"
    """A schedule of this name was added at run time."""


@alone
def announce(worker_id: str, declared: Mapping[str, str]) -> Steps[None]:
    """Say which schedules the code of a worker declares, with their hashes."""
    yield Statement(
        "declare_schedules", {"worker_id": worker_id, "schedules": to_json(dict(declared))}
    )


@reads
def unsettled(mine: Mapping[str, ScheduleDefinition]) -> Steps[tuple[list[str], list[str]]]:
    """Which of these should be declared anew, and which schedules nobody declares any more."""
    found = yield Statement("declared_schedules")
    live = yield from live_declarations()
    known = {str(name): (config, seen, stopped_at) for name, config, seen, stopped_at in found}
    anew: list[str] = []
    for name, definition in mine.items():
        config, seen, stopped_at = known.get(name, (None, "[]", None))
        if config is None or stopped_at is not None:
            anew.append(name)
        elif config != definition.config_hash:
            is_new = definition.config_hash not in schedules.decode_hashes(seen)
            if is_new or config not in live.get(name, ()):
                anew.append(name)
    # We are alive, whatever our row says.
    alive = live.keys() | mine.keys()
    gone = [name for name in rows.texts(known) if known[name][2] is None and name not in alive]
    return anew, gone


@writes
def declare(definition: ScheduleDefinition) -> Steps[Declared]:
    """Bring one declaration into force, if it is its turn."""
    name = definition.name
    found = yield Statement("lock_schedule", {"name": name})
    now = yield from schedules.clock()
    if not found:
        if (yield from schedules.insert(definition, now, declared=True)):
            yield Statement("notify", hint=schedules.EVERYWHERE)
            return Declared.NEW
        return Declared.YIELDED
    try:
        record = schedule_rows.schedule(found[0])
    except UnreadableRow:
        if not found[0][_DECLARED]:
            return Declared.TAKEN
        # What code says can be written again.
        yield Statement("delete_schedule", {"name": name})
        yield from schedules.insert(definition, now, declared=True)
        yield Statement("notify", hint=schedules.EVERYWHERE)
        return Declared.CHANGED
    if not record.declared:
        return Declared.TAKEN
    if record.config_hash == definition.config_hash:
        if record.stopped_at is None:
            return Declared.SAME
        is_restart = now - record.stopped_at <= RESTART_US
        first = record.next_run_at if is_restart else definition.rule.first(now)
        if not is_restart:
            yield from schedules.drop_waiting(record)
        yield from schedules.put(
            record,
            paused=record.paused_at is not None,
            by=record.paused_by,
            next_run_at=first,
            keeps_waiting=is_restart,
        )
        return Declared.RETURNED
    if definition.config_hash in schedules.hashes(record):
        live = yield from live_declarations()
        if record.config_hash in live.get(name, ()):
            return Declared.YIELDED
    yield from schedules.change(record, definition, now, declared=True)
    yield Statement("notify", hint=schedules.EVERYWHERE)
    return Declared.CHANGED


@writes
def stop(name: str) -> Steps[bool]:
    """Stop a schedule that no live worker declares; False if it is not one, or cannot be read."""
    try:
        record = yield from schedules.lock(name)
    except UnreadableRow:
        # Others are stopped behind it; who would fire it says what is wrong with it.
        return False
    if not record.declared or record.stopped_at is not None:
        return False
    if name in (yield from live_declarations()):
        return False
    yield from schedules.put(
        record,
        paused=record.paused_at is not None,
        by=record.paused_by,
        stopped=True,
        next_run_at=record.next_run_at,
    )
    return True
