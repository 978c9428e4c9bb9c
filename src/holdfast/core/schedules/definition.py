"""What a schedule is: when it fires, what it sends, and how it treats ticks it cannot fire on time.

Owns the checks of its options, its stored form, and its hash. Whatever is wrong is said where the
schedule is defined, before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict, get_args

import msgspec

from holdfast.core.digest import hex_digest
from holdfast.core.errors import ConfigError, PayloadError
from holdfast.core.moment import from_us, optional_us
from holdfast.core.options import checks
from holdfast.core.payload.codec import to_json
from holdfast.core.records import OnConflict, Submission
from holdfast.core.schedules.firing import FiringRule, Missed, Overlap
from holdfast.core.schedules.timing import DEFAULT_ZONE, Once, Timing, When, read, zone_of
from holdfast.core.workflows.plan import OnFailure

__all__ = [
    "MOST_MISSED",
    "ScheduleDefinition",
    "ScheduleOptions",
    "ScheduledCall",
    "ScheduledWorkflow",
    "define",
]

_OVERLAPS: Final[tuple[Overlap, ...]] = get_args(Overlap)
_MISSED: Final[tuple[Missed, ...]] = get_args(Missed)
MOST_MISSED: Final = 10_000


class ScheduleOptions(TypedDict, total=False):
    """The options of a schedule; what is left out has its default."""

    tz: str
    """The time zone of a cron pattern, by name: "Europe/Berlin"."""
    overlap: Overlap
    """What a tick does while the prior run has not ended: "skip" drops it, "wait" fires it when
    that ends, "allow" fires it at once."""
    missed: Missed
    """What becomes of ticks that nobody fired for over a minute: "latest" fires the newest, "skip"
    none, "all" one after the other."""
    max_missed: int
    """How many of them "all" fires, the newest."""
    start: datetime
    """No tick before this moment; multiples of an interval are counted from it."""
    end: datetime
    """No tick from this moment on."""


class ScheduledWorkflow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is sent if the call is that of a workflow: a whole with one step, which builds it."""

    step_name: str
    on_failure: OnFailure = "continue"
    deadline_us: int | None = None
    unique_slot: str | None = None
    on_conflict: str = "return"
    tags: str | None = None
    arguments: str | None = None
    returns: str | None = None
    digest: str = ""


class ScheduledCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """The call that each tick sends, complete and already checked: a `Submission` without what
    differs from one tick to the other."""

    task_name: str
    version: int
    queue_name: str
    priority: int
    args: str
    kwargs: str
    enqueue_sha: str
    task_options: str | None = None
    tags: str | None = None
    delay_us: int | None = None
    good_for_us: int | None = None
    max_retries: int = 0
    unique_key: str | None = None
    unique_slot: str | None = None
    unique_until: str | None = None
    unique_period_us: int | None = None
    on_conflict: OnConflict = "return"
    concurrency_key: str | None = None
    is_routable: bool = False
    workflow: ScheduledWorkflow | None = None

    @classmethod
    def of(cls, submission: Submission, workflow: ScheduledWorkflow | None = None) -> ScheduledCall:
        """The call of a submission that is never sent itself."""
        names = cls.__struct_fields__[:-1]
        fields: dict[str, Any] = {name: getattr(submission, name) for name in names}
        return cls(**fields, workflow=workflow)

    def submission(self, id: bytes, sent_at: int, name: str, tick: int) -> Submission:
        """The task that one tick sends."""
        fields: dict[str, Any] = {
            field: getattr(self, field) for field in self.__struct_fields__[:-1]
        }
        return Submission(id=id, sent_at=sent_at, schedule_name=name, schedule_tick=tick, **fields)

    def encode(self) -> str:
        """As it is stored."""
        return _encoder.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> ScheduledCall:
        """`PayloadError` for what is none."""
        try:
            call = _decoder.decode(text)
            checks.task_name(call.task_name)
            checks.queue_name(call.queue_name)
            checks.priority(call.priority)
            return call
        except (msgspec.MsgspecError, UnicodeError, ConfigError) as error:
            raise PayloadError(f"is not the call of a schedule ({error})") from None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ScheduledCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDefinition:
    """A schedule as it was defined; of plain values, as it is stored."""

    name: str
    pattern: str
    timezone: str
    overlap: Overlap
    missed: Missed
    max_missed: int
    start_at: int | None
    end_at: int | None
    task_name: str
    version: int
    payload: str
    """Its `ScheduledCall`."""

    @property
    def config_hash(self) -> str:
        """By which two definitions are told apart."""
        said = (
            self.pattern,
            self.timezone,
            self.overlap,
            self.missed,
            self.max_missed,
            self.start_at,
            self.end_at,
            self.payload,
        )
        return hex_digest(to_json(said))

    @property
    def timing(self) -> Timing:
        """When it fires; `ConfigError` if what is stored means nothing here."""
        return read(self.pattern, self.timezone, self.start_at)

    @property
    def rule(self) -> FiringRule:
        """How it fires."""
        return FiringRule(
            self.timing,
            checks.choice(self.overlap, _OVERLAPS, "overlap"),
            checks.choice(self.missed, _MISSED, "missed"),
            self.max_missed,
            self.start_at,
            self.end_at,
        )

    @property
    def call(self) -> ScheduledCall:
        """What it sends; `PayloadError` if what is stored is not readable."""
        return ScheduledCall.decode(self.payload)


def define(
    name: object, when: When, call: ScheduledCall, options: ScheduleOptions
) -> ScheduleDefinition:
    """A schedule, checked."""
    unknown = options.keys() - ScheduleOptions.__annotations__.keys()
    if unknown:
        names = ", ".join(sorted(ScheduleOptions.__annotations__))
        raise ConfigError(
            f"{min(unknown)!r} is not an option of a schedule: use {names}", option=min(unknown)
        )
    start = optional_us(options.get("start"), option="start")
    end = optional_us(options.get("end"), option="end")
    zone = options.get("tz", DEFAULT_ZONE)
    if zone != DEFAULT_ZONE:
        # Only a cron pattern is read by it, but it is stored and shown with every schedule. On a
        # machine without time zones intervals need none.
        zone_of(zone)
    missed: Missed = options.get("missed", "latest")
    checks.choice(missed, _MISSED, "missed")
    overlap: Overlap = options.get("overlap", "wait" if missed == "all" else "skip")
    checks.choice(overlap, _OVERLAPS, "overlap")
    timing = read(when, zone, start)
    found = ScheduleDefinition(
        name=checks.schedule_name(name),
        pattern=timing.text,
        timezone=zone,
        overlap=overlap,
        missed=missed,
        max_missed=_max_missed(options.get("max_missed", 100)),
        start_at=start,
        end_at=end,
        task_name=call.task_name,
        version=call.version,
        payload=call.encode(),
    )
    _check(found, timing)
    return found


def _max_missed(value: object) -> int:
    if type(value) is int and 1 <= value <= MOST_MISSED:
        return value
    raise ConfigError(
        f"max_missed={value!r:.100} is not usable: give a whole number from 1 to {MOST_MISSED:,}",
        option="max_missed",
    )


def _check(found: ScheduleDefinition, timing: Timing) -> None:
    if found.missed == "all" and found.overlap == "skip":
        raise ConfigError(
            f'schedule {found.name!r}: missed="all" fires every tick and overlap="skip" drops '
            'some: give overlap="wait" (the default with "all") or "allow"',
            option="overlap",
        )
    if found.start_at is not None and found.end_at is not None and found.start_at >= found.end_at:
        raise ConfigError(
            f"schedule {found.name!r}: its end, {from_us(found.end_at).isoformat()}, is not after "
            f"its start, {from_us(found.start_at).isoformat()}",
            option="end",
        )
    if isinstance(timing, Once):
        for option, at in (("start", found.start_at), ("end", found.end_at)):
            if at is not None:
                raise ConfigError(
                    f"schedule {found.name!r} fires once: {option} does not go with that",
                    option=option,
                )
    elif found.end_at is not None and found.rule.first(_BEGINNING_US) is None:
        raise ConfigError(
            f"schedule {found.name!r} has no tick before its end, "
            f"{from_us(found.end_at).isoformat()}: it would never fire",
            option="end",
        )


_BEGINNING_US: Final = 0
