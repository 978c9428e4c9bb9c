"""What one send changes of its task's options.

Owns the options of a single call and their checks: a wrong one fails in `options(…)`, before
anything is encoded or written. What is not chosen follows the task's definition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict, Unpack
from uuid import UUID

from holdfast.core.errors import ConfigError
from holdfast.core.identity import as_bytes
from holdfast.core.moment import Due, Span, When, due, instant_us
from holdfast.core.options import checks
from holdfast.core.options.concurrency_key import check_key
from holdfast.core.options.unique import Unique

__all__ = ["PLAIN", "CallOptions", "SendOptions", "choose", "put_off"]


class CallOptions(TypedDict, total=False):
    """The keywords of `task.options(…)`."""

    queue: str
    """Another queue than the task's."""
    priority: int
    """Another priority than the task's."""
    delay: float | timedelta
    """Not before so long from now."""
    run_at: datetime
    """Not before this moment, which has a time zone."""
    good_until: datetime
    """EXPIRED if it has not begun by then."""
    good_for: Span
    """EXPIRED if it has not begun so long after its time to run."""
    unique: Unique | None
    """At most one live call per key; None: not even if the task says so."""
    id: UUID | str
    """The id of this call: sending it again under the same id is one task, not two."""
    tags: Iterable[str]
    """Words to find it by, instead of the task's."""
    concurrency_key: str | None
    """Whose turn it takes, instead of what the task makes of its arguments; None: nobody's."""


@dataclass(frozen=True, slots=True)
class SendOptions:
    """The options of one send, checked. None: as the task says."""

    queue: str | None = None
    priority: int | None = None
    due: Due | None = None
    good_until: int | None = None
    good_for_us: int | None = None
    unique: Unique | None = None
    not_unique: bool = False
    """`unique=None` was asked for: not even if the task is."""
    id: bytes | None = None
    tags: tuple[str, ...] | None = None
    concurrency_key: str | None = None
    no_key: bool = False
    """`concurrency_key=None` was asked for: not even if the task has one."""


PLAIN: Final = SendOptions()
_NAMES: Final = frozenset(CallOptions.__annotations__)


def choose(base: SendOptions, **options: Unpack[CallOptions]) -> SendOptions:
    """`base`, with these options changed."""
    unknown = options.keys() - _NAMES
    if unknown:
        raise ConfigError(
            f"{min(unknown)!r} is not an option of a send: use {', '.join(sorted(_NAMES))}",
            option=min(unknown),
        )
    if "delay" in options and "run_at" in options:
        raise ConfigError("give delay or run_at, not both", option="delay")
    if "good_until" in options and "good_for" in options:
        raise ConfigError("give good_until or good_for, not both", option="good_until")
    return replace(base, **{name: value for part in _read(options) for name, value in part.items()})


def _read(options: CallOptions) -> Iterable[dict[str, Any]]:
    if "queue" in options:
        yield {"queue": checks.queue_name(options["queue"])}
    if "priority" in options:
        yield {"priority": checks.priority(options["priority"])}
    if "delay" in options:
        yield {"due": _delay(options["delay"])}
    if "run_at" in options:
        yield {"due": Due(run_at=instant_us(options["run_at"], option="run_at"))}
    if "good_until" in options:
        until = instant_us(options["good_until"], option="good_until")
        yield {"good_until": until, "good_for_us": None}
    if "good_for" in options:
        span = checks.positive_us(options["good_for"], "good_for")
        yield {"good_for_us": span, "good_until": None}
    if "unique" in options:
        yield {"unique": _unique(options["unique"]), "not_unique": options["unique"] is None}
    if "id" in options:
        yield {"id": as_bytes(options["id"])}
    if "tags" in options:
        yield {"tags": checks.tags(options["tags"])}
    if "concurrency_key" in options:
        key = options["concurrency_key"]
        yield {"concurrency_key": None if key is None else check_key(key), "no_key": key is None}


def put_off(base: SendOptions, when: When) -> SendOptions:
    """`base`, to be run later: in seconds, after a timedelta, or at a moment."""
    return replace(base, due=due(when, option="when"))


def _delay(delay: object) -> Due:
    if isinstance(delay, datetime):
        raise ConfigError(f"delay={delay!r} is a moment: give it as run_at", option="delay")
    return due(delay, option="delay")  # type: ignore[arg-type]  # what it is not, it refuses


def _unique(unique: object) -> Unique | None:
    if unique is None or isinstance(unique, Unique):
        return unique
    raise ConfigError(f"unique={unique!r} is not usable: give Unique(…) or None", option="unique")
