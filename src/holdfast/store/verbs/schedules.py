"""Schedules: read, added, paused, resumed, deleted.

Owns the rows of `schedules` but for their firing (`ticks`) and for what code declares
(`declarations`). Every change is made under the lock of the schedule's row, by the database's
clock. What is new, changed or resumed goes on with its next tick after now, never with a past one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from holdfast.core.errors import ConfigError, UnreadableRow
from holdfast.core.moment import from_us
from holdfast.core.payload.codec import to_json
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.core.schedules.records import ScheduleRecord, TickCause
from holdfast.core.schedules.timing import Once
from holdfast.store import rows, schedule_rows
from holdfast.store.op import At, Channel, Hint, Statement, Steps, reads, writes
from holdfast.store.verbs.live_declarations import live_declarations

EVERYWHERE = Hint(Channel.READY, ("",))
"""Wakes every worker: something may be due sooner than was known."""
_MOST_SEEN = 50
"""How many hashes of a schedule are remembered."""
_hashes = msgspec.json.Decoder(list[str])


def unknown(name: str) -> ConfigError:
    """The error for a name that no schedule has."""
    return ConfigError(f"no schedule is named {name!r:.300}", option="name")


@reads
def list_schedules(set_aside: list[UnreadableRow] | None = None) -> Steps[list[ScheduleRecord]]:
    """Every schedule, by name; those that cannot be read are added to `set_aside`."""
    found = yield Statement("read_schedules")
    return list(rows.readable(schedule_rows.schedule, found, set_aside))


@reads
def show(name: str) -> Steps[ScheduleRecord]:
    """One schedule; `ConfigError` if there is none, `UnreadableRow` if it cannot be read."""
    return (yield from find(name))


def find(name: str) -> Steps[ScheduleRecord]:
    """The same as a part of another operation."""
    found = yield Statement("read_schedule", {"name": name})
    if not found:
        raise unknown(name)
    return schedule_rows.schedule(found[0])


def lock(name: str) -> Steps[ScheduleRecord]:
    """One schedule, locked; errors as of `show`."""
    found = yield Statement("lock_schedule", {"name": name})
    if not found:
        raise unknown(name)
    return schedule_rows.schedule(found[0])


def clock() -> Steps[int]:
    """The database's time."""
    ((now,),) = yield Statement("read_clock")
    return int(now)


@writes
def add(definition: ScheduleDefinition, *, by: str | None = None) -> Steps[ScheduleRecord]:
    """Add a schedule, or change one that was added before. One that code declares is refused."""
    name = definition.name
    now = yield from clock()
    if definition.rule.first(now) is None:
        raise ConfigError(
            f"schedule {name!r}: {_why_never(definition)}, so it would never fire", option="when"
        )
    known = yield from _locked(name)
    if known is None and not (yield from insert(definition, now, declared=False, by=by)):
        known = yield from _locked(name)
    if known is not None:
        if known.declared and known.stopped_at is None:
            raise ConfigError(
                f"schedule {name!r} is declared by the code of the workers: change it there, or "
                "give another name",
                option="name",
            )
        if known.declared or known.config_hash != definition.config_hash:
            yield from change(known, definition, now, declared=False)
    yield Statement("notify", hint=EVERYWHERE)
    return (yield from find(name))


def _why_never(definition: ScheduleDefinition) -> str:
    if isinstance(definition.timing, Once):
        return "its moment has passed"
    if definition.end_at is None:
        return "it has no more ticks"
    return f"it has no tick between now and its end, {from_us(definition.end_at).isoformat()}"


def _locked(name: str) -> Steps[ScheduleRecord | None]:
    found = yield Statement("lock_schedule", {"name": name})
    return schedule_rows.schedule(found[0]) if found else None


def insert(
    definition: ScheduleDefinition, now: int, *, declared: bool, by: str | None = None
) -> Steps[bool]:
    """Write a new schedule; False if the name has just been taken."""
    found = yield Statement(
        "add_schedule",
        {
            **_stored(definition, now),
            "declared": declared,
            "seen_hashes": to_json([definition.config_hash]),
            "created_by": by,
        },
    )
    return bool(found)


def change(
    known: ScheduleRecord, definition: ScheduleDefinition, now: int, *, declared: bool
) -> Steps[None]:
    """Give a schedule another definition. Ticks of the old one that wait are dropped."""
    seen = [each for each in hashes(known) if each != definition.config_hash]
    yield from drop_waiting(known)
    yield Statement(
        "change_schedule",
        {
            **_stored(definition, now),
            "declared": declared,
            "seen_hashes": to_json([*seen[1 - _MOST_SEEN :], definition.config_hash]),
        },
    )


def _stored(definition: ScheduleDefinition, now: int) -> Mapping[str, Any]:
    values: dict[str, Any] = asdict(definition)
    for column in ("start_at", "end_at"):
        values[column] = at(values[column])
    values["config_hash"] = definition.config_hash
    values["next_run_at"] = at(definition.rule.first(now))
    return values


def hashes(record: ScheduleRecord) -> list[str]:
    """The definitions that a schedule has had, the last one last."""
    return decode_hashes(record.seen_hashes) or [record.config_hash]


def decode_hashes(text: str) -> list[str]:
    """The same from the stored text; none if somebody has written there by hand."""
    try:
        return _hashes.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []


def at(moment: int | None) -> At | None:
    """A time as a parameter."""
    return None if moment is None else At(moment)


@writes
def pause(name: str, *, by: str | None = None) -> Steps[bool]:
    """Let a schedule fire nothing more; False if it was paused before."""
    record = yield from lock(name)
    yield from put(record, paused=True, by=by, next_run_at=record.next_run_at)
    return record.paused_at is None


@writes
def resume(name: str) -> Steps[bool]:
    """Let a paused schedule go on with its next tick after now; False if it was not paused."""
    record = yield from lock(name)
    if record.paused_at is None:
        return False
    now = yield from clock()
    yield from drop_waiting(record)
    yield from put(record, next_run_at=record.definition.rule.first(now), keeps_waiting=False)
    return True


def put(
    record: ScheduleRecord,
    *,
    paused: bool = False,
    by: str | None = None,
    stopped: bool = False,
    next_run_at: int | None,
    keeps_waiting: bool = True,
) -> Steps[None]:
    """Write whether a schedule is paused or stopped, and where it goes on."""
    yield Statement(
        "set_schedule",
        {
            "name": record.name,
            "paused": paused,
            "by": by,
            "stopped": stopped,
            "next_run_at": at(next_run_at),
            "keeps_waiting": keeps_waiting,
        },
        hint=EVERYWHERE,
    )


def drop_waiting(record: ScheduleRecord) -> Steps[None]:
    """Drop the ticks of a schedule that wait for its prior run, and count them."""
    if not record.has_waiting:
        return
    waiting = yield Statement("waiting_ticks", {"name": record.name})
    yield Statement("drop_waiting", {"name": record.name, "cause": TickCause.CHANGED.value})
    yield from note(record, dropped=len(waiting), next_run_at=record.next_run_at)


def note(
    record: ScheduleRecord,
    *,
    next_run_at: int | None,
    has_waiting: bool = False,
    last_tick: int | None = None,
    last_task_id: bytes | None = None,
    runs: int = 0,
    dropped: int = 0,
) -> Steps[None]:
    """Write what became of ticks."""
    yield Statement(
        "note_schedule",
        {
            "name": record.name,
            "next_run_at": at(next_run_at),
            "has_waiting": has_waiting,
            "last_tick": at(last_tick),
            "last_task_id": last_task_id,
            "runs": runs,
            "dropped": dropped,
        },
    )


@writes
def delete(name: str) -> Steps[bool]:
    """Remove a schedule and the history of its ticks; False if there is none. The tasks stay.

    One that a live worker declares would come back, and is refused. One that cannot be read goes.
    """
    found = yield Statement("lock_schedule", {"name": name})
    if not found:
        return False
    try:
        declared = schedule_rows.schedule(found[0]).declared
    except UnreadableRow:
        declared = False
    if declared and name in (yield from live_declarations()):
        raise ConfigError(
            f"schedule {name!r} is declared by the code of live workers, and would come back: "
            "remove it there, or pause it",
            option="name",
        )
    gone = yield Statement("delete_schedule", {"name": name})
    yield Statement("notify", hint=EVERYWHERE)
    return bool(gone)
